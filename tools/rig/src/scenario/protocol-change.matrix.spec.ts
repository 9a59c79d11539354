import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freezeAgent } from '../apps/agents.ts';
import { NODE_AGENT } from '../apps/tokens.ts';
import { kubectl } from '../kubernetes/control-plane.ts';
import { down } from '../substrate/down.ts';
import { layoutOf, namespaceOf, routerName } from '../layout/layout.ts';
import type { Protocol } from '../layout/options.ts';
import { parsePcap } from './pcap.ts';
import { dropsAt, dropsSince, placesOf } from './drops.ts';
import { type FlowReport, flowDuring, inPodNetwork, podOn, startCapture, timeUntil } from './scenario.ts';
import { up } from '../substrate/up.ts';
import { onNode } from '../node/node.ts';

/** Links change their protocol while packets pass. */

const layout = layoutOf({ sites: 2, workers: 2, protocol: 'VXLAN' });
/** Until the last step of a change is over (apps/node-dataplane, transitions.ts). */
const SETTLED_MS = 30_000;
const work = mkdtempSync(join(tmpdir(), 'unbounded-lab-'));

beforeAll(async () => {
  await down();
  await up(layout);
}, 300_000);
afterAll(async () => {
  await down();
  rmSync(work, { recursive: true, force: true });
}, 60_000);

const change = async (protocol: Protocol): Promise<void> => {
  const patch = JSON.stringify({ spec: { tunnelProtocol: protocol } });
  for (const { name } of layout.sites) await kubectl(layout, ['patch', 'site', name, '--type=merge', '-p', patch]);
};

interface Flows {
  /** Within a site. */
  readonly near: FlowReport;
  /** Across sites. */
  readonly far: FlowReport;
  /** What kernels dropped meanwhile. */
  readonly dropped: string;
}

/** Both at once. */
const flowsDuring = async (seconds: number, disturb: () => Promise<void>): Promise<Flows> => {
  const [from, w2, w1] = [await podOn(layout, 's1-w1'), await podOn(layout, 's1-w2'), await podOn(layout, 's2-w1')];
  const places = [...placesOf(layout), ...[from, w2, w1].map((pod) => [pod.name, inPodNetwork(pod)] as const)];
  const before = dropsAt(places);
  const [near, far] = await Promise.all([
    flowDuring({ from, to: w2, seconds }, disturb),
    flowDuring({ from, to: w1, seconds }, async () => undefined),
  ]);
  return { near, far, dropped: dropsSince(before, dropsAt(places)) };
};

const routeTo = (block: string): string => onNode('s1-w1', 'ip', 'route', 'get', block);

test.each<[Protocol, RegExp]>([
  ['None', /dev eth0/],
  ['VXLAN', /dev unbounded0/],
])('to %s: no packet is lost', { timeout: 120_000 }, async (protocol, expected) => {
  const near = await podOn(layout, 's1-w2');
  const { dropped, ...flows } = await flowsDuring(45, async () => {
    await change(protocol);
    await delay(SETTLED_MS);
  });
  expect(routeTo(near.ip)).toMatch(expected);
  for (const [name, { sent, received, losses }] of Object.entries(flows))
    expect({ name, sent, received, losses }, dropped).toEqual({ name, sent: 45_000, received: 45_000, losses: [] });
});

test('while another link changes, too, nothing is lost of an end that is late', { timeout: 180_000 }, async () => {
  const toGateways = async (protocol: Protocol): Promise<void> => {
    const patch = JSON.stringify({ spec: { tunnelProtocol: protocol } });
    await kubectl(layout, ['patch', 'sitegatewaypoolassignment', 's1', '--type=merge', '-p', patch]);
  };
  const hasTunnel = (): boolean => onNode('s1-w1', 'ip', '-br', 'link').includes('vxlan0');
  await toGateways('VXLAN');
  await change('VXLAN');
  await delay(SETTLED_MS);
  const { near, dropped } = await flowsDuring(45, async () => {
    const goOn = freezeAgent('s1-w2', NODE_AGENT);
    await change('None');
    await delay(2500);
    await goOn(); // it sends by the tunnel for another four seconds
    await delay(2000);
    await toGateways('None');
    await delay(SETTLED_MS);
  });
  expect(hasTunnel()).toBe(false);
  const { sent, received, losses } = near;
  expect({ sent, received, losses }, dropped).toEqual({ sent: 45_000, received: 45_000, losses: [] });
});

test('to WireGuard: from then on no packet is in the clear', { timeout: 120_000 }, async () => {
  const near = await podOn(layout, 's1-w2');
  const file = join(work, 'lan.pcap');
  let stop = (): Promise<void> => Promise.resolve();
  await flowsDuring(45, async () => {
    await change('WireGuard');
    await timeUntil(
      'both ends have changed',
      () => ['s1-w1', 's1-w2', 's1-g1'].every((node) => onNode(node, 'ip', '-br', 'link').includes('wg51820')),
      20_000,
    );
    await delay(1000);
    stop = await startCapture(namespaceOf(routerName('s1')), 'lan0', file);
  });
  await stop();
  const pods = new Set([(await podOn(layout, 's1-w1')).ip, near.ip]);
  const packets = parsePcap(readFileSync(file));
  expect(packets.length).toBeGreaterThan(1000);
  const inClear = packets.filter(
    ({ source, destination, destinationPort }) =>
      pods.has(source ?? '') || pods.has(destination ?? '') || destinationPort === 4789,
  );
  expect(inClear.map(({ source, destination }) => `${source} > ${destination}`)).toEqual([]);
});
