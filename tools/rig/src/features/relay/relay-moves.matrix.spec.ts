import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { down } from '../../substrate/down.ts';
import { type LabLayout, layoutOf } from '../../layout/layout.ts';
import { stopDaemon } from '../../machine/daemon.ts';
import { blockUdp, peersByPath, RELAY_DAEMON, startRelay } from './relay.ts';
import { type FlowReport, flowDuring, killAgent, podOn, timeUntil } from '../../scenario/scenario.ts';
import { up } from '../../substrate/up.ts';
import { verify } from '../../cli/verify.ts';

/** Sites whose borders let no UDP pass, then do, then do not: 1,000 packets a second from one to the other and back. */

const layoutWith = (udp: 'all' | 'none'): LabLayout => layoutOf({ fabric: true, workers: 1, blockUdp: udp });
const layout = layoutWith('all');
const gateways = layout.nodes.filter(({ role }) => role === 'gateway').map(({ name }) => name);

beforeAll(async () => {
  await down();
  await up(layout);
}, 300_000);
afterAll(down, 60_000);

const isBy = (path: 'direct' | 'relay'): boolean =>
  gateways.every((node) => {
    const { [path]: wanted, ...others } = peersByPath(node);
    return wanted > 0 && Object.values(others).every((count) => count === 0);
  });

/** A path that failed is not tried again for some seconds, and for longer each time that it fails soon. */
const MOVE_LIMIT_MS = 30_000;

const during = async (seconds: number, disturb: () => Promise<void>): Promise<FlowReport> => {
  const ends = { from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1'), seconds };
  return await flowDuring(ends, disturb);
};
const moveTo = async (path: 'direct' | 'relay'): Promise<void> => {
  blockUdp(layoutWith(path === 'direct' ? 'none' : 'all'));
  await timeUntil(`the sites' link goes by ${path}`, () => isBy(path), MOVE_LIMIT_MS);
};

test('everything reaches everything over the relay', { timeout: 120_000 }, async () => {
  expect(isBy('relay')).toBe(true);
  expect(await verify(layout)).toBe(true);
});

test('nothing is lost when the agents of both gateways are killed', { timeout: 60_000 }, async () => {
  const { lost, losses } = await during(12, async () => {
    for (const node of gateways) await killAgent(layout, node, 'node-dataplane');
  });
  expect(losses).toEqual([]);
  expect(lost).toBe(0);
});

test('the link goes direct as soon as UDP passes, and loses nothing on the way', { timeout: 90_000 }, async () => {
  const { lost, losses } = await during(25, async () => {
    await moveTo('direct');
    await delay(3000);
  });
  expect(losses).toEqual([]);
  expect(lost).toBe(0);
});

test('it is back on the relay within three seconds when UDP is blocked again', { timeout: 90_000 }, async () => {
  const { largestGapMillis } = await during(20, () => moveTo('relay'));
  expect(largestGapMillis).toBeGreaterThan(500); // it was the direct path that was taken away
  expect(largestGapMillis).toBeLessThan(3000);
});

test('a relay that was away for a while is used again', { timeout: 60_000 }, async () => {
  const { largestGapMillis, losses } = await during(25, async () => {
    await stopDaemon(RELAY_DAEMON, 0);
    await delay(2000);
    startRelay(layout);
  });
  expect(largestGapMillis).toBeGreaterThan(1000); // there is no other
  expect(losses.at(-1)!.atMillis).toBeLessThan(20_000);
});

test('UDP comes and goes: links are where they belong in the end', { timeout: 120_000 }, async () => {
  for (const udp of ['none', 'all', 'none'] as const) {
    blockUdp(layoutWith(udp));
    await delay(1000);
  }
  await moveTo('direct');
  expect(await verify(layoutWith('none'))).toBe(true);
});
