import { PIN_FOLDER } from '@unbounded/config/ownership';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { down } from '../substrate/down.ts';
import { layoutOf } from '../layout/layout.ts';
import { onLan } from './lan/place.ts';
import { flowDuring, killAgent, podOn, startFlow, timeUntil } from './scenario.ts';
import { up } from '../substrate/up.ts';
import { onNode, tryOnNode } from '../node/node.ts';
import { agentReady } from '../apps/agent-state.ts';

/** A node changes its data path while packets pass, and frames of a LAN. */

const layout = layoutOf({ workers: 1, ip: 'dual', lan: true });
const NODES = ['s1-w1', 's1-g1', 's2-g1', 's2-w1'] as const;

beforeAll(async () => {
  await down();
  await up(layout);
}, 300_000);
afterAll(down, 60_000);

const restart = async (dataplane: 'ebpf' | 'netlink'): Promise<void> => {
  for (const node of NODES) {
    await killAgent(layout, node, 'node-dataplane', { UNBOUNDED_DATAPLANE: dataplane });
    await timeUntil(`the agent of ${node} is ready`, () => agentReady(node), 30_000);
  }
};
const ends = async () => ({ from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1') });

const FRAMES_PER_SECOND = 200;
const flowsDuring = async (act: () => Promise<void>) => {
  const [from, to] = [await onLan(layout, 's1-w1'), await onLan(layout, 's2-w1')];
  const frames = await startFlow(from.pod, { ip: to.ipv4 }, FRAMES_PER_SECOND);
  const packets = await flowDuring({ ...(await ends()), seconds: 40 }, act);
  const { lost, sent, losses } = await frames.end();
  console.log(`LAN: ${lost} of ${sent} lost, ${JSON.stringify(losses)}`);
  expect(sent).toBeGreaterThan(40 * FRAMES_PER_SECOND);
  return { sent: packets.sent, received: packets.received, framesLost: lost };
};

const tracesOf = (node: string): Record<string, boolean> => ({
  anchor: tryOnNode(node, 'ip', 'link', 'show', 'unbounded0') !== undefined,
  pins: tryOnNode(node, 'test', '-e', PIN_FOLDER) !== undefined,
  rule: onNode(node, 'ip', 'rule').includes('lookup 252'),
  routes: onNode(node, 'ip', 'route', 'show', 'table', 'all', 'proto', '117').includes('table 252'),
  nexthops: onNode(node, 'ip', 'nexthop', 'show', 'proto', '117') !== '',
});
const EBPF = { anchor: true, pins: true, rule: false, routes: false, nexthops: false };
const NETLINK = { anchor: false, pins: false, rule: true, routes: true, nexthops: true };

test(
  'from eBPF to kernel routes: nothing of the programs stays, and no packet is lost',
  { timeout: 300_000 },
  async () => {
    const report = await flowsDuring(() => restart('netlink'));
    for (const node of NODES)
      await timeUntil(node, () => JSON.stringify(tracesOf(node)) === JSON.stringify(NETLINK), 15_000);
    expect(report).toEqual({ sent: 40_000, received: 40_000, framesLost: 0 });
  },
);

test('and back: nothing of the routes and next hops stays, and no packet is lost', { timeout: 300_000 }, async () => {
  const report = await flowsDuring(() => restart('ebpf'));
  for (const node of NODES)
    await timeUntil(node, () => JSON.stringify(tracesOf(node)) === JSON.stringify(EBPF), 15_000);
  expect(report).toEqual({ sent: 40_000, received: 40_000, framesLost: 0 });
});
