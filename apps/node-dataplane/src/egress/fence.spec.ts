import type { ElementsChange } from '@unbounded/nftables';
import { silentLogger as logger } from '@unbounded/telemetry';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createFence, type Fence } from './fence.ts';

/** When the right to an address is renewed in the kernel, and when it is not. */

const [FIRST, SECOND] = ['192.0.2.1', '2001:db8::1'];
const [HOLD_MS, RENEW_MS] = [8000, 1000];

let nowMs = 0;
let renewed: string[];
let isOwner = true;
let isBroken = false;
let fence: Fence;
beforeEach(() => {
  vi.useFakeTimers();
  renewed = [];
  isOwner = true;
  isBroken = false;
  const changeElements = async ({ add = [] }: ElementsChange): Promise<void> => {
    if (isBroken) throw new Error('no memory');
    renewed.push(...add.flatMap(({ elements }) => elements as string[]));
  };
  fence = createFence({
    ...{ logger, holdMs: HOLD_MS, renewMs: RENEW_MS, now: () => nowMs },
    table: () => ({ changeElements }),
    ownership: { isOwner: () => isOwner },
  });
});
afterEach(() => {
  fence.stop();
  vi.useRealTimers();
});

/** The clock goes on; the process runs, or stands still until the end. */
const pass = async (ms: number, { standsStill = false } = {}): Promise<string[]> => {
  renewed.length = 0;
  if (standsStill) nowMs += ms;
  for (let end = nowMs + (standsStill ? RENEW_MS : ms); nowMs < end;) {
    nowMs += RENEW_MS;
    await vi.advanceTimersByTimeAsync(RENEW_MS);
  }
  return [...new Set(renewed)].sort();
};

test('it may use what is held and renewed, and neither what is held no more nor what has lapsed', async () => {
  await fence.hold(new Set([FIRST, SECOND]), nowMs);
  expect([fence.mayUse(FIRST), fence.mayUse(SECOND)]).toEqual([true, true]);
  await fence.hold(new Set([SECOND]), nowMs);
  expect([fence.mayUse(FIRST), fence.mayUse(SECOND)]).toEqual([false, true]);
  isOwner = false;
  await pass(HOLD_MS - RENEW_MS);
  expect(fence.mayUse(SECOND)).toBe(true);
  await pass(RENEW_MS);
  expect(fence.mayUse(SECOND)).toBe(false);
});

test('what is held is renewed, in every family, and what is released is not', async () => {
  await fence.hold(new Set([FIRST, SECOND]), nowMs);
  expect(await pass(20_000)).toEqual([FIRST, SECOND]);
  await fence.release([FIRST]);
  expect(await pass(20_000)).toEqual([SECOND]);
  expect(fence.lapsed()).toEqual(new Set());
});

test('what is released while it is being renewed is gone behind that', async () => {
  const steps: string[] = [];
  const changeElements = async ({ add = [] }: ElementsChange): Promise<void> => {
    await Promise.resolve();
    steps.push(add.length > 0 ? 'renewed' : 'removed');
  };
  const own = createFence({ logger, table: () => ({ changeElements }), ownership: { isOwner: () => true } });
  const renewal = own.hold(new Set([FIRST]), nowMs);
  while (steps.length === 0) await Promise.resolve();
  await own.release([FIRST]);
  await renewal;
  expect(steps).toEqual(['renewed', 'renewed', 'removed', 'removed']); // its own fence, and that of ARP
  own.stop();
});

test('a process that stood still for a moment goes on', async () => {
  await fence.hold(new Set([FIRST]), nowMs);
  expect(await pass(HOLD_MS - 2 * RENEW_MS, { standsStill: true })).toEqual([FIRST]);
  expect(fence.lapsed()).toEqual(new Set());
});

test('one that stood still until the right was over renews nothing before it is told that it has the address', async () => {
  await fence.hold(new Set([FIRST]), nowMs);
  expect(await pass(HOLD_MS, { standsStill: true })).toEqual([]);
  expect(fence.lapsed()).toEqual(new Set([FIRST]));
  expect(await pass(20_000)).toEqual([]);
  await fence.hold(new Set([FIRST]), nowMs);
  expect(fence.lapsed()).toEqual(new Set());
  expect(await pass(20_000)).toEqual([FIRST]);
});

test('nor when it was known before the right was over that it has the address: of what became of it since that says nothing', async () => {
  await fence.hold(new Set([FIRST]), nowMs);
  const knownMs = nowMs;
  await pass(HOLD_MS, { standsStill: true });
  await fence.hold(new Set([FIRST, SECOND]), knownMs); // the second is as old
  expect(fence.lapsed()).toEqual(new Set([FIRST, SECOND]));
  expect(await pass(2000)).toEqual([]);
});

test('the same for one that heard of nobody until then', async () => {
  await fence.hold(new Set([FIRST]), nowMs);
  isOwner = false;
  expect(await pass(HOLD_MS)).toEqual([]);
  isOwner = true;
  expect(await pass(2000)).toEqual([]);
  expect(fence.lapsed()).toEqual(new Set([FIRST]));
});

test('one that starts and hears of somebody before the right is over goes on without a gap', async () => {
  isOwner = false;
  await fence.hold(new Set([FIRST]), nowMs);
  expect(fence.mayUse(FIRST)).toBe(false);
  expect(await pass(HOLD_MS - 2 * RENEW_MS)).toEqual([]);
  isOwner = true;
  expect(await pass(RENEW_MS)).toEqual([FIRST]);
  expect(fence.mayUse(FIRST)).toBe(true);
});

test('and for one that the kernel refused until then', async () => {
  await fence.hold(new Set([FIRST]), nowMs);
  isBroken = true;
  await pass(HOLD_MS);
  isBroken = false;
  expect(await pass(2000)).toEqual([]);
  expect(fence.lapsed()).toEqual(new Set([FIRST]));
});

test('to say again that it is held renews no time that is not over', async () => {
  await fence.hold(new Set([FIRST]), nowMs);
  isOwner = false;
  await pass(HOLD_MS - RENEW_MS);
  await fence.hold(new Set([FIRST]), nowMs);
  await pass(RENEW_MS);
  expect(fence.lapsed()).toEqual(new Set([FIRST]));
});
