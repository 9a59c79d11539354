import { PROBE_BYTES } from '@unbounded/health';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createPathMtuProber, type PathMtuProber } from './path-mtu.prober.ts';
import type { Purpose, Session } from './session.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const CEILING = 1420;
const HEADERS = 28;
const ROUND_TRIP_MS = 2;

/** A path that answers what is not too large for it, on a clock that the test moves. */
const pathOf = () => {
  const path = { carriesBytes: CEILING, padded: 0 };
  let prober: PathMtuProber;
  let sequence = 0n;
  const send = (purpose: Purpose, size: number): bigint => {
    const number = ++sequence;
    if (purpose === 'pathMtu') path.padded++;
    if (size === PROBE_BYTES || size + HEADERS <= path.carriesBytes)
      setTimeout(
        () => prober.onAnswer({ purpose, sequence: number, sizeReceived: size, rttMs: ROUND_TRIP_MS }),
        ROUND_TRIP_MS,
      );
    return number;
  };
  const verdict = { state: 'Healthy', graceOver: false };
  const session = { plan: { family: 4 }, verdict, rttMs: ROUND_TRIP_MS, send } as unknown as Session;
  const found: (number | undefined)[] = [];
  prober = createPathMtuProber({ session, ceilingBytes: CEILING, onFound: () => found.push(prober.limitBytes) });
  return { path, prober, found };
};

const pass = (seconds: number): Promise<unknown> => vi.advanceTimersByTimeAsync(seconds * 1000);

test('a black hole is found within ten seconds, to the byte', async () => {
  const { path, prober } = pathOf();
  await pass(10);
  expect(prober.limitBytes).toBeUndefined();
  path.carriesBytes = 1300;
  await pass(10);
  expect(prober.limitBytes).toBe(1300);
});

test('a path that carries hardly anything is found too, within twenty seconds', async () => {
  const { path, prober } = pathOf();
  await pass(10);
  path.carriesBytes = 600;
  await pass(20);
  expect(prober.limitBytes).toBe(600);
});

test('a moment in which nothing large passes is no black hole', async () => {
  const { path, found } = pathOf();
  await pass(1.5);
  for (let moment = 0; moment < 20; moment++) {
    path.carriesBytes = 1000;
    await pass(0.7);
    path.carriesBytes = CEILING;
    await pass(2.9);
  }
  expect(found).toEqual([]);
});

test('a path that is wider again is found to be so within seconds', async () => {
  const { path, prober } = pathOf();
  path.carriesBytes = 1300;
  await pass(12);
  expect(prober.limitBytes).toBe(1300);
  path.carriesBytes = CEILING;
  await pass(12);
  expect(prober.limitBytes).toBeUndefined();
});

test('a path that stays narrow is asked less and less often whether it is', async () => {
  const { path, prober } = pathOf();
  path.carriesBytes = 1300;
  await pass(3600);
  const before = path.padded;
  await pass(3600);
  expect(prober.limitBytes).toBe(1300);
  // One to confirm every five seconds, and six searches.
  expect(path.padded - before).toBeLessThan(3600 / 5 + 6 * 40);
});
