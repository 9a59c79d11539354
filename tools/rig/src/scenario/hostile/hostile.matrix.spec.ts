import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { annotations } from '@unbounded/crds';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stopAgent } from '../../apps/agents.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { down } from '../../substrate/down.ts';
import { layoutOf } from '../../layout/layout.ts';
import { DATAPLANES } from '../../layout/options.ts';
import { allHealthy } from '../outages.ts';
import { podOn } from '../scenario.ts';
import { up } from '../../substrate/up.ts';
import { boundaryAttempts, podTunnelAttempts } from './boundary.attempts.ts';
import { agentOf, kubeletOf } from './identity.ts';
import { annotationAttempts, objectAttempts, kubeletAttempts, type Targets } from './node-objects.attempts.ts';
import { packetAttempts } from './node-packets.attempts.ts';
import { podAttempts } from './pod.attempts.ts';
import { IN_VAIN, judged, whileFlowing } from './while-flowing.ts';
import { probePods } from '../../substrate/probes.ts';

/** A node and a pod do their worst: flows between the others lose nothing, and nothing forged arrives. */

/** Inside a site, and between all sites; none of them has an end on the hostile node. */
const FLOWS = [
  ['s1-w2', 's1-cp'],
  ['s1-w2', 's2-w1'],
  ['s2-w2', 's3-w1'],
  ['s3-w2', 's1-w2'],
] as const;

describe.each(DATAPLANES)('data path %s', (dataplane) => {
  const layout = layoutOf({ sites: 3, workers: 2, ip: 'dual', dataplane });
  const nodeNamed = (name: string) => layout.nodes.find((node) => node.name === name)!;
  const work = mkdtempSync(join(tmpdir(), 'unbounded-lab-'));

  beforeAll(async () => {
    await down();
    await up(layout);
    await allHealthy(layout, 60_000);
  }, 400_000);
  afterAll(async () => {
    await down();
    rmSync(work, { recursive: true, force: true });
  }, 60_000);

  const publishedKeys = async (): Promise<ReadonlyMap<string, string>> => {
    const { items } = JSON.parse(await kubectl(layout, ['get', 'nodes', '-o', 'json'])) as {
      items: { metadata: { name: string; annotations: Record<string, string> } }[];
    };
    return new Map(items.map(({ metadata }) => [metadata.name, metadata.annotations[annotations.wireGuardPublicKey]!]));
  };

  test('root on a worker harms no flow between others', { timeout: 900_000 }, async () => {
    const hostile = nodeNamed('s1-w1');
    const targets: Targets = {
      layout,
      hostile,
      neighbour: nodeNamed('s1-w2'),
      gateway: nodeNamed('s1-g1'),
      farGateway: nodeNamed('s2-g1'),
      farWorker: nodeNamed('s2-w1'),
      keys: await publishedKeys(),
      agent: agentOf(layout, hostile),
      kubelet: kubeletOf(layout, hostile),
    };
    await stopAgent(hostile.name, 'node-dataplane', 'SIGKILL'); // it would correct what is written in its name
    const [victim, farVictim, bystander] = [
      await podOn(layout, 's1-w2'),
      await podOn(layout, 's2-w1'),
      await podOn(layout, 's3-w1'),
    ];
    const attempts = [
      ...annotationAttempts(targets),
      ...objectAttempts(targets),
      ...kubeletAttempts(targets),
      ...packetAttempts({ ...targets, victim, farVictim, bystander }),
      ...boundaryAttempts({ ...targets, victim, farVictim, bystander }),
    ];
    expect(attempts.length).toBeGreaterThanOrEqual(50);
    const beside = { layout, flows: FLOWS, victims: [victim, farVictim], folder: work };
    expect(judged(await whileFlowing(attempts, beside))).toEqual(IN_VAIN);
  });

  test('a pod harms no flow between others', { timeout: 600_000 }, async () => {
    const home = nodeNamed('s2-w1');
    const [attacker, beside] = (await probePods(layout)).filter(({ node }) => node === home.name);
    const [victim, farVictim] = [await podOn(layout, 's2-w2'), await podOn(layout, 's1-w2')];
    const targets = {
      attacker: attacker!,
      beside: beside!,
      home,
      neighbour: nodeNamed('s2-w2'),
      gateway: nodeNamed('s2-g1'),
      farWorker: nodeNamed('s1-w2'),
      farGateway: nodeNamed('s1-g1'),
      victim,
      farVictim,
    };
    const attempts = [...podAttempts(targets), ...podTunnelAttempts(targets)];
    expect(attempts.length).toBeGreaterThanOrEqual(27);
    const others = { layout, flows: FLOWS, victims: [beside!, victim, farVictim], folder: work };
    expect(judged(await whileFlowing(attempts, others))).toEqual(IN_VAIN);
  });
});
