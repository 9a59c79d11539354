import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentReady } from '../../apps/agent-state.ts';
import { admittedBlocks, PARTNER, PARTNER_PORTS, partnerIps } from '../../features/partner/layout.ts';
import { applyManifests, kubectl } from '../../kubernetes/control-plane.ts';
import { familyOf, hostOf } from '../../layout/addresses.ts';
import { layoutOf, namespaceOf } from '../../layout/layout.ts';
import { images } from '../../substrate/cluster/images.ts';
import { down } from '../../substrate/down.ts';
import { parsePcap } from '../pcap.ts';
import { startTcpdump, timeUntil } from '../scenario.ts';
import { withLateWatches } from './late-watches.ts';
import { type Selected, upWithRule } from './rule.ts';
import { selectedByPort, uplinksDuring } from './uplinks.ts';

/** A hundred pods that send as soon as they run, on every node, half of them where the agent hears of them five seconds late. */

const layout = layoutOf({ workers: 1, gateways: 2, ip: 'dual', partner: true });
const LATE = { nodes: ['s1-g2', 's1-w1', 's2-g1', 's2-w1'], lateMs: 5000 } as const;
const PODS = 100;
const PER_SECOND = 5;
let selected: Selected;

beforeAll(async () => {
  selected = await upWithRule(layout);
}, 400_000);
afterAll(down, 60_000);

const LABELS = { app: 'crowd', probe: 'probe-a' }; // the second one is selected by the rule

/** Each sends to the partner from its first moment, with one container for each family. */
const crowd = (): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: LABELS.app },
  spec: {
    replicas: PODS,
    selector: { matchLabels: LABELS },
    template: {
      metadata: { labels: LABELS },
      spec: {
        tolerations: [{ operator: 'Exists' }],
        terminationGracePeriodSeconds: 0,
        topologySpreadConstraints: [
          {
            ...{ maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule' },
            labelSelector: { matchLabels: LABELS },
          },
        ],
        containers: partnerIps(layout).map((ip) => ({
          name: `ipv${familyOf(ip)}`,
          image: images['probe']!.reference,
          args: ['flow', `${hostOf(ip)}:${PARTNER_PORTS.echo}`, String(PER_SECOND), '3600'],
          imagePullPolicy: 'Never',
          securityContext: { capabilities: { add: ['NET_ADMIN'] } }, // for the size of its socket buffers
        })),
      },
    },
  },
});

const runningPods = async (): Promise<number> => {
  const words = ['get', 'pods', '-l', `app=${LABELS.app}`, '--field-selector=status.phase=Running', '-o', 'name'];
  return (await kubectl(layout, words)).split('\n').filter(Boolean).length;
};

/** How many connections reach the partner from each egress address within some seconds: their ports tell them apart. */
const connectionsAtPartner = async (seconds: number): Promise<Map<string, number>> => {
  const folder = mkdtempSync(join(tmpdir(), 'crowd-'));
  const file = join(folder, 'partner.pcap');
  try {
    const filter = `udp and dst port ${PARTNER_PORTS.echo}`;
    const stop = await startTcpdump(namespaceOf(PARTNER), ['-i', 'eth0', '-Q', 'in', '-w', file, '-s', '128', filter]);
    await delay(seconds * 1000);
    await stop();
    const ports = new Map<string, Set<number>>();
    for (const { source = '', sourcePort = 0 } of parsePcap(readFileSync(file)))
      ports.set(source, (ports.get(source) ?? new Set()).add(sourcePort));
    return new Map([...ports].map(([source, own]) => [source, own.size]));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const RUN_MS = 300_000;

test('from the first packet they have the egress address, and no other', { timeout: 900_000 }, async () => {
  const judge = selectedByPort(layout, admittedBlocks(layout), { selected: [PARTNER_PORTS.echo], others: [] });
  let seen = new Map<string, number>();
  const carried = await uplinksDuring(layout, judge, () =>
    withLateWatches(layout, LATE, async () => {
      await timeUntil('the agents are ready', () => LATE.nodes.every(agentReady), 60_000);
      await applyManifests(layout, JSON.stringify(crowd()));
      const tookMs = await timeUntil('the pods run', async () => (await runningPods()) === PODS, RUN_MS);
      console.log(`${PODS} pods run after ${tookMs} ms`);
      await delay(2 * LATE.lateMs);
      seen = await connectionsAtPartner(3);
      await kubectl(layout, ['delete', 'deployment', LABELS.app]);
      await timeUntil('the pods are gone', async () => (await runningPods()) === 0, RUN_MS);
    }),
  );
  console.log(JSON.stringify([...seen]), JSON.stringify([...carried.proper]));
  expect(carried.improper).toEqual([]);
  expect([...carried.proper.keys()]).toEqual([selected.owner]);
  expect(seen).toEqual(new Map(selected.addresses.map((address) => [address, PODS])));
});
