import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMetrics, type Metrics, silentLogger } from '@unbounded/telemetry';
import type { NeutralPlan } from '../../data-path/kernel-plan.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { PeerReport } from '../health/messages.ts';
import { keyLifetimeMs } from './key-age.ts';
import { type KeyRing, openKeyRing } from './key-ring.ts';
import { probeSeen } from './probe-seen.ts';
import { type Advanced, createKeyRotation, type KeyRotation, ROTATION_TIMES } from './rotation.ts';
import { waitingProblems } from './waiting.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

let folder: string;
let clockMs: number;
let elapsedMs: number;
let ring: KeyRing;
let metrics: Metrics;
let changes: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rotation-'));
  clockMs = Date.now();
  elapsedMs = 0;
  metrics = createMetrics();
  changes = 0;
});
afterEach(() => rmSync(folder, { recursive: true }));

const open = (maxAgeMs = 0): KeyRotation => {
  ring = openKeyRing(folder, { ...ROTATION_TIMES, now: () => clockMs, elapsed: () => elapsedMs });
  return createKeyRotation({
    ring,
    nodeName: 'n1',
    maxAgeMs,
    times: ROTATION_TIMES,
    now: () => clockMs,
    elapsed: () => elapsedMs,
    metrics,
    logger: silentLogger,
    onKeys: () => changes++,
  });
};
/** A node whose only peer is reached by VXLAN. */
const plan = { wireGuard: [], probes: [{ node: 'b', intervalMs: 1000 }] } as unknown as NeutralPlan;
const report = (changed: Partial<PeerReport> = {}): PeerReport => ({
  node: 'b',
  family: 4,
  state: 'Healthy',
  graceOver: true,
  knowsNextKey: false,
  ...changed,
});
const pass = (rotation: KeyRotation, peers: readonly PeerReport[] = [], isCurrent = true): Advanced => {
  rotation.observe(plan, new Map());
  return rotation.advance({ plan, isCurrent, isWhole: true, peers });
};
const sleep = (ms: number): void => {
  clockMs += ms;
  elapsedMs += ms;
};
const aware = [report({ knowsNextKey: true })];

describe('an exchange begins', () => {
  test('once for each text that asks for one, also when the agent was restarted meanwhile', () => {
    const rotation = open();
    expect([rotation.begin(undefined), rotation.begin('monday'), rotation.begin('monday')]).toEqual([
      false,
      true,
      false,
    ]);
    expect(open().begin('monday')).toBe(false);
    expect(changes).toBe(1);
  });

  test('for its age in the last quarter of the greatest one, on each node at a time of its own', () => {
    const max = 100 * HOUR_MS;
    const nodes = Array.from({ length: 400 }, (_, index) => keyLifetimeMs(max, `n${index}`, 0) / max);
    expect(Math.min(...nodes)).toBeGreaterThan(0.75);
    expect(Math.max(...nodes)).toBeLessThanOrEqual(1);
    expect(nodes.filter((part) => part < 0.875).length).toBeGreaterThan(150);
    const rotation = open(max);
    clockMs += 74 * HOUR_MS;
    expect(rotation.begin(undefined)).toBe(false);
    clockMs += 27 * HOUR_MS;
    expect(rotation.begin(undefined)).toBe(true);
  });

  test('for its age only if there is a greatest one', () => {
    const rotation = open();
    clockMs += 1e6 * HOUR_MS;
    expect(rotation.begin(undefined)).toBe(false);
  });

  test('when the one before is over altogether', () => {
    const rotation = open();
    rotation.begin('monday');
    expect(rotation.begin('tuesday')).toBe(false);
    pass(rotation);
    sleep(MINUTE_MS);
    pass(rotation, aware);
    expect([ring.current.generation, rotation.begin('tuesday')]).toEqual([1, false]); // the previous key is believed
    sleep(6 * MINUTE_MS);
    pass(rotation);
    expect([ring.previous, rotation.begin('tuesday'), ring.next?.generation]).toEqual([undefined, true, 2]);
  });
});

describe('an exchange goes on', () => {
  test('when its time is over and who is probed has heard', () => {
    const rotation = open();
    rotation.begin('now');
    expect(pass(rotation, aware)).toEqual({ problems: [], nextPassMs: 1000 });
    clockMs += HOUR_MS; // the machine's clock is set
    expect(pass(rotation, aware).nextPassMs).toBe(1000);
    sleep(30_000);
    expect(pass(rotation, [report()])).toEqual({ problems: [], nextPassMs: 1000 });
    expect(pass(rotation, aware, false).nextPassMs).toBe(1000); // by a kept plan nothing is decided
    expect(pass(rotation, aware)).toEqual({ problems: [], nextPassMs: 0 });
    expect([ring.current.generation, changes]).toEqual([1, 2]);
  });

  test('not before somebody has been told whom it waits for, and then without haste', () => {
    const rotation = open();
    rotation.begin('now');
    pass(rotation);
    sleep(3 * MINUTE_MS);
    const { problems, nextPassMs } = pass(rotation, [report()]);
    expect(problems.map(({ reason }) => reason)).toEqual(['KeyRotationBlocked']);
    expect(problems[0]!.message).toContain('generation 1');
    expect(problems[0]!.message).toContain('b: has not received the new key');
    expect([nextPassMs, ring.current.generation]).toEqual([undefined, 0]);
  });
});

test('an exchange that the disk refuses does not begin, is a problem, and begins later', () => {
  const rotation = open();
  mkdirSync(join(folder, 'server.next.priv.new'));
  expect(rotation.begin('now')).toBe(false);
  expect(pass(rotation).problems).toEqual([
    { reason: 'StateNotWritable', message: expect.stringContaining(`${folder} cannot be written`) },
  ]);
  expect([ring.next, changes]).toEqual([undefined, 0]);
  rmSync(join(folder, 'server.next.priv.new'), { recursive: true });
  expect(rotation.begin('now')).toBe(true);
  expect(pass(rotation).problems).toEqual([]);
});

test('generation, age and state of the key are metrics', async () => {
  const rotation = open();
  rotation.begin('now');
  pass(rotation);
  expect(await metrics.render()).toContain('unbounded_wireguard_key_rotating 1');
  sleep(MINUTE_MS);
  pass(rotation, aware);
  sleep(MINUTE_MS);
  pass(rotation);
  const text = await metrics.render();
  expect(text).toContain('unbounded_wireguard_key_generation 1');
  expect(text).toContain('unbounded_wireguard_key_rotating 0');
  expect(text).toContain('unbounded_wireguard_key_age_seconds 120'); // since it was made
});

test('the text of what an exchange waits for names a few peers of each kind', () => {
  const many = Array.from({ length: 7 }, (_, index) => [`n${index}`, 'NoHandshake'] as const);
  const [problem] = waitingProblems(3, new Map([...many, ['x', 'OldKeyInUse']]));
  expect(problem!.message).toMatch(/n0, n1, n2, n3, n4 and 2 more: no handshake with the new key/);
  expect(problem!.message).toMatch(/x: still sends with the old key/);
  expect(waitingProblems(3, new Map())).toEqual([]);
});

test.each<[string, PeerReport[], string]>([
  ['a node that answers in any family has heard if it has in one', [report(), report({ knowsNextKey: true })], 'aware'],
  ['in whatever order', [report({ knowsNextKey: true }), report({ family: 6 })], 'aware'],
  ['one that does not answer is silent', [report({ state: 'Unhealthy', knowsNextKey: true })], 'silent'],
  ['one that answers in the other family is not', [report({ state: 'Unhealthy' }), report({ family: 6 })], 'unaware'],
])('%s', (_, reports, want) => expect(probeSeen(reports).get('b')).toBe(want));
