import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { annotations, type FDBEntry, type Neighbor, type Network } from '@unbounded/crds';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { layoutOf } from '../../layout/layout.ts';
import { DATAPLANES } from '../../layout/options.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { agentOf } from '../hostile/identity.ts';
import { IN_VAIN, judged, whileFlowing } from '../hostile/while-flowing.ts';
import { allHealthy } from '../outages.ts';
import { closedNetwork, podClaimAttempts, tokenAttempts } from './claim.attempts.ts';
import { nodeLocatorAttempts, podLocatorAttempts } from './locator.attempts.ts';
import { allOnLan, onLan, problemsOn } from './place.ts';
import { portAttempts } from './port.attempts.ts';

/** A pod of the LAN, and the node it is on, do their worst: others on the LAN lose nothing and are told nothing that is not so. */

const FLOWS = [
  ['s1-w2', 's2-w1'],
  ['s2-w2', 's1-cp'],
  ['s1-w2', 's1-cp'],
] as const;
/**
 * Tunnels of gateways take three quarters of two processors at 1,000 packets a second of each flow, and then their queues
 * overflow in any second, whatever the attempt. What remains is a loss that an attempt makes.
 */
const PER_SECOND = 200;

describe.each(DATAPLANES)('data path %s', (dataplane) => {
  const layout = layoutOf({ workers: 2, ip: 'dual', lan: true, dataplane });
  const nodeNamed = (name: string) => layout.nodes.find((node) => node.name === name)!;
  const folder = mkdtempSync(join(tmpdir(), 'unbounded-lab-'));

  beforeAll(async () => {
    await down();
    await up(layout);
    await allHealthy(layout, 60_000);
    await kubectl(layout, ['apply', '-f', '-'], JSON.stringify(closedNetwork));
  }, 400_000);
  afterAll(async () => {
    await down();
    rmSync(folder, { recursive: true, force: true });
  }, 60_000);

  const object = async <T>(...what: readonly string[]): Promise<T> =>
    JSON.parse(await kubectl(layout, ['get', ...what, '-o', 'json'])) as T;

  const findTargets = async () => {
    const [home, neighbour] = [nodeNamed('s1-w1'), nodeNamed('s1-w2')];
    const [attacker, beside] = await allOnLan(layout, home.name);
    const [victim, far] = [await onLan(layout, neighbour.name), await onLan(layout, 's2-w1')];
    const nodes = await object<{ items: { metadata: { name: string; annotations: Record<string, string> } }[] }>(
      'nodes',
    );
    const locators = new Map(
      nodes.items.map(({ metadata }) => [metadata.name, metadata.annotations[annotations.l2Locator]!]),
    );
    const entries = await object<{ items: FDBEntry[] }>('fdbentries');
    const neighbors = await object<{ items: Neighbor[] }>('neighbors');
    const { status } = await object<Network>('network', 'lan');
    return {
      ...{ layout, home, neighbour, attacker: attacker!, beside: beside!, victim, far },
      locatorOf: (node: string) => locators.get(node)!.replace(/\/64$/, ''),
      network: status!.number!,
      fdbEntry: entries.items.find(({ spec }) => spec.mac === victim.mac)!.metadata.name,
      neighbor: neighbors.items.find(({ spec }) => spec.ip === victim.ipv4)!.metadata.name,
      agent: agentOf(layout, home),
    };
  };

  test('a pod and its node harm nobody on the LAN', { timeout: 900_000 }, async () => {
    const targets = await findTargets();
    const attempts = [
      ...portAttempts(targets),
      ...podLocatorAttempts(targets),
      ...nodeLocatorAttempts(targets),
      ...tokenAttempts(targets),
      ...podClaimAttempts(targets),
    ];
    expect(attempts.length).toBeGreaterThanOrEqual(50);
    const others = {
      ...{ layout, flows: FLOWS, perSecond: PER_SECOND, folder, device: 'net1' },
      victims: [targets.beside.pod, targets.victim.pod, targets.far.pod],
      endOn: async (node: string) => onLan(layout, node).then(({ pod, ipv4 }) => ({ pod, ip: ipv4 })),
    };
    expect(judged(await whileFlowing(attempts, others))).toEqual(IN_VAIN);
    expect(await problemsOn(layout)).toEqual([]);
  });
});
