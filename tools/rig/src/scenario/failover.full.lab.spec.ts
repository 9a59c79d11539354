import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { datagram, ethernet, hexOf } from '@unbounded/testing/packets';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NODE_APPS, stopAgent } from '../apps/agents.ts';
import { kubectl } from '../kubernetes/control-plane.ts';
import { down } from '../substrate/down.ts';
import { type LabNode, layoutOf } from '../layout/layout.ts';
import {
  allHealthy,
  busiestGateway,
  cutWan,
  idleGateways,
  type Outage,
  partition,
  powerOff,
  setProbing,
} from './outages.ts';
import { checkout, nodeJs } from '../machine/paths.ts';
import { dropsAt, dropsSince, placesOf } from './drops.ts';
import { parseFrame, parsePcap } from './pcap.ts';
import { withoutApiServer } from './restarts.ts';
import { type FlowReport, flowDuring, namespaceOf, podOn, startCapture, timeUntil, tryInPod } from './scenario.ts';
import { up } from '../substrate/up.ts';
import { onNode } from '../node/node.ts';
import { inNodeNetwork } from '../checks/probe.ts';
import { startAgent } from '../substrate/agents.ts';

/** Gateways and links fail, with a second gateway there. Lost time is measured by tools/bench failover, not here. */

const layout = layoutOf({ gateways: 2, workers: 2 });
const gateways = layout.nodes.filter(({ role, site }) => role === 'gateway' && site === 's1');
/** So long that a flow that waits for the end of it is told from one that was switched. */
const OUTAGE_MS = 6000;

beforeAll(async () => {
  await down();
  await up(layout);
  await setProbing(layout, 100, 3);
}, 300_000);
const work = mkdtempSync(join(tmpdir(), 'unbounded-lab-'));
afterAll(async () => {
  await down();
  rmSync(work, { recursive: true, force: true });
}, 60_000);

const acrossDuring = async (
  outageOf: (gateway: LabNode) => Outage,
  around: (act: () => Promise<void>) => Promise<void> = (act) => act(),
): Promise<FlowReport> => {
  await allHealthy(layout, 60_000);
  const ends = { from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1'), seconds: 16 };
  return await flowDuring(ends, () =>
    around(async () => {
      const outage = outageOf(await busiestGateway(gateways));
      outage.begin();
      await delay(OUTAGE_MS);
      outage.end();
    }),
  );
};

describe('traffic goes on by the other gateway', () => {
  test('when the one in use is off', { timeout: 120_000 }, async () => {
    const report = await acrossDuring((gateway) => powerOff(layout, gateway));
    expect(report.lost).toBeGreaterThan(0); // it was the one in use
    expect(report.largestGapMillis).toBeLessThan(OUTAGE_MS / 2);
  });

  test('when the one in use is off while the API server is away', { timeout: 120_000 }, async () => {
    const without = (act: () => Promise<void>): Promise<void> => withoutApiServer(layout, act);
    const report = await acrossDuring((gateway) => powerOff(layout, gateway), without);
    expect(report.lost).toBeGreaterThan(0);
    expect(report.largestGapMillis).toBeLessThan(OUTAGE_MS / 2);
  });

  test('when only its WAN link is cut, while it still answers from within the site', { timeout: 120_000 }, async () => {
    const report = await acrossDuring((gateway) => cutWan(layout, gateway));
    expect(report.lost).toBeGreaterThan(0);
    expect(report.largestGapMillis).toBeLessThan(OUTAGE_MS / 2);
  });
});

test('what passes by the other gateway does not notice', { timeout: 200_000 }, async () => {
  await allHealthy(layout, 60_000);
  const ends = { from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1'), seconds: 10 };
  // A flow and its answers choose their gateways each by itself: one is needed that leaves a gateway out.
  let idle: LabNode | undefined;
  for (let attempt = 0; attempt < 12 && !idle; attempt++) {
    const report = await flowDuring(ends, async () => {
      [idle] = await idleGateways(gateways);
      if (!idle) return;
      const outage = powerOff(layout, idle);
      outage.begin();
      await delay(OUTAGE_MS / 2);
      outage.end();
    });
    expect(report).toMatchObject({ sent: 10_000, received: 10_000 });
  }
  expect(idle, 'no flow left a gateway out').toBeDefined();
});

const VXLAN_PORT = 4789;
const VXLAN_HEADER_BYTES = 8;
const FLOWS = 16;

test('a gateway that is dead from the start carries nothing of a new node', { timeout: 120_000 }, async () => {
  await allHealthy(layout, 60_000);
  const node = layout.nodes.find(({ name }) => name === 's1-w2')!;
  const dead = gateways[1]!;
  const outage = powerOff(layout, dead);
  // What is sent to it is to be seen, whether or not it says which MAC it has.
  const mac = onNode(dead.name, 'cat', '/sys/class/net/eth0/address').trim();
  onNode(node.name, 'ip', 'neigh', 'replace', dead.internalIp, 'lladdr', mac, 'nud', 'permanent', 'dev', 'eth0');
  outage.begin();
  for (const app of NODE_APPS.toReversed()) await stopAgent(node.name, app);
  onNode(node.name, nodeJs, join(checkout, 'apps/node-dataplane/dist/main.mjs'), 'cleanup');
  onNode(node.name, 'find', '/var/lib/unbounded', '-mindepth', '1', '-delete'); // as a new node has it
  const podsOfNode = ['pods', '-l', 'app=probe', `--field-selector=spec.nodeName=${node.name}`];
  await kubectl(layout, ['delete', ...podsOfNode, '--force', '--grace-period=0']);
  const file = join(work, 'dead.pcap');
  const stop = await startCapture(namespaceOf(node.name), 'eth0', file);
  for (const app of NODE_APPS) await startAgent(layout, node, app);
  await timeUntil(
    'a new pod runs',
    async () => {
      const ready = '{.items[*].status.conditions[?(@.type=="Ready")].status}';
      return (await kubectl(layout, ['get', ...podsOfNode, '-o', `jsonpath=${ready}`])).includes('True');
    },
    40_000,
  );
  const from = await podOn(layout, node.name);
  const dropped = dropsAt(placesOf(layout));
  const reports = await Promise.all(
    Array.from({ length: FLOWS }, async () =>
      flowDuring({ from, to: await podOn(layout, 's2-w1'), seconds: 5, perSecond: 100 }, async () => undefined),
    ),
  );
  await stop();
  outage.end();
  onNode(node.name, 'ip', 'neigh', 'delete', dead.internalIp, 'dev', 'eth0');
  const inner = parsePcap(readFileSync(file))
    .filter(({ destination, destinationPort }) => destination === dead.internalIp && destinationPort === VXLAN_PORT)
    .flatMap(({ payload }) => parseFrame(payload.subarray(VXLAN_HEADER_BYTES)).source ?? []);
  expect(inner.length).toBeGreaterThan(0); // it is probed, and nothing else
  expect(inner).not.toContain(from.ip);
  const losses = reports.map(({ losses: parts }) => parts.map(({ atMillis }) => atMillis).join(' '));
  const why = `losses at ${losses.join(' | ')}; dropped: ${dropsSince(dropped, dropsAt(placesOf(layout)))}`;
  for (const report of reports) expect(report, why).toMatchObject({ sent: 500, received: 500 });
});

test('a site that is alone loses nothing inside, and is joined again by itself', { timeout: 120_000 }, async () => {
  await allHealthy(layout, 60_000);
  const outage = partition(layout, 's2');
  const inside = { from: await podOn(layout, 's2-w1'), to: await podOn(layout, 's2-w2'), seconds: 12 };
  const across = { from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1'), seconds: 25 };
  const [near, far] = await Promise.all([
    flowDuring(inside, async () => {
      outage.begin();
      await delay(OUTAGE_MS);
      outage.end();
    }),
    flowDuring(across, async () => undefined),
  ]);
  expect(near).toMatchObject({ sent: 12_000, received: 12_000 });
  expect(far.lost).toBeGreaterThan(1000);
  expect(far.largestGapMillis).toBeLessThan(OUTAGE_MS + 10_000);
});

test('a stranger of the LAN who sends with the address of a pod is dropped', { timeout: 60_000 }, async () => {
  const victim = await podOn(layout, 's1-w2');
  const claimed = await podOn(layout, 's1-w1');
  const mac = onNode('s1-w2', 'cat', '/sys/class/net/eth0/address').trim();
  const packet = datagram({ source: claimed.ip, destination: victim.ip }, [7777, 9000], new Uint8Array(32));
  const frame = hexOf(ethernet({ to: mac, from: '02:00:00:00:00:01' }, packet));
  const dropped = (): number =>
    Number(/packets (\d+)/.exec(onNode('s1-w2', 'nft', 'list', 'counter', 'inet', 'unbounded', 'forged_source'))?.[1]);
  const before = dropped();
  // Past the firewall of the node whose cable it is: a stranger has none of ours.
  await inNodeNetwork('s1-cp', ['inject', 'frames', 'eth0'], `${frame}\n`.repeat(3));
  await timeUntil('they are counted', () => dropped() - before === 3, 10_000);
  expect(tryInPod(victim, 'ss', '-Hun')).not.toContain(claimed.ip);
});
