import { Writable } from 'node:stream';
import { acceptPush, type HeldReport, type NodeReport, type Push } from '@unbounded/status';
import { createLogger, silentLogger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createPushLoop, type PushLoop, type PushTimings } from './push-loop.ts';
import { NoAggregatorError, type SendPush } from './push.port.ts';

const TIMINGS: PushTimings = {
  everyMs: 40,
  spacingMs: 5,
  lookMs: 1,
  deadlineMs: 200,
  backoff: { baseMs: 5, maxMs: 10 },
  absentBackoff: { baseMs: 60_000, maxMs: 60_000 },
};
const logger = silentLogger;

const reportOf = (message?: string): NodeReport => ({
  agentVersion: '0.1.0',
  isComplete: true,
  problems: message === undefined ? [] : [{ reason: 'R', message }],
  drops: {},
});

/** An aggregator as it is meant to be: what it holds is what it was sent. */
const createAggregator = () => {
  const state = { held: undefined as HeldReport | undefined, pushes: [] as Push[], isAway: false };
  const send: SendPush = async (push) => {
    if (state.isAway) throw new Error('connection refused');
    state.pushes.push(push);
    const accepted = acceptPush(state.held, push);
    if (!accepted.ok) throw new Error(accepted.error);
    if (accepted.value === 'resync') return 'resync';
    state.held = accepted.value;
    return 'accepted';
  };
  return { state, send };
};

let loop: PushLoop | undefined;
let report: NodeReport;
beforeEach(() => {
  report = reportOf();
});
afterEach(() => loop?.stop());

const start = (send: SendPush, timings: Partial<PushTimings> = {}): PushLoop =>
  (loop = createPushLoop({ report: () => report, send, logger, timings: { ...TIMINGS, ...timings } }));

it('that fails for another reason than before is logged, and once for each reason', async () => {
  const lines: string[] = [];
  const destination = new Writable({
    write: (chunk: Buffer, _, done) => (lines.push(...String(chunk).trimEnd().split('\n')), done()),
  });
  const reasons = ['there is no Service', 'there is no Service', 'answers 401', 'answers 401', 'answers 401'];
  let pushes = 0;
  const send = (): Promise<never> => Promise.reject(new Error(reasons[pushes++] ?? 'answers 401'));
  loop = createPushLoop({
    ...{ report: () => report, send, timings: TIMINGS },
    logger: createLogger({ name: 'test', level: 'info', destination }),
  });
  await until('six pushes', () => pushes >= 6);
  expect(lines.map((line) => (JSON.parse(line) as { error: string }).error)).toEqual([
    'there is no Service',
    'answers 401',
  ]);
});

describe('the report of a node', () => {
  it('is pushed whole once, then as deltas, also when nothing changed', async () => {
    const { state, send } = createAggregator();
    start(send);
    await until('three pushes', () => state.pushes.length >= 3);
    expect(state.pushes.slice(0, 3)).toMatchObject([
      { revision: 1, report: { agentVersion: '0.1.0' } },
      { revision: 2, base: 1, patch: {} },
      { revision: 3, base: 2, patch: {} },
    ]);
  });

  it('is pushed soon when something notable changed, and not for a round trip', async () => {
    const { state, send } = createAggregator();
    const pushLoop = start(send, { everyMs: 60_000 });
    await until('the first push', () => state.held !== undefined);
    const connectivity = (rttMs: number): NodeReport['connectivity'] => ({
      ...{ site: 's1', role: 'worker', dataplane: 'ebpf', groups: {} },
      peers: { p: { protocol: 'None', wireGuard: {}, health: { ipv4: { state: 'Healthy', rttMs } } } },
    });
    report = { ...reportOf(), connectivity: connectivity(1) };
    await until('the push of a peer', () => {
      pushLoop.look();
      return state.pushes.length === 2;
    });
    report = { ...report, connectivity: connectivity(2), drops: { spoofed: 7 } };
    for (let look = 0; look < 10; look++) {
      pushLoop.look();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(state.pushes).toHaveLength(2);
    report = { ...report, problems: [{ reason: 'R', message: 'm' }] };
    await until('the push of a problem', () => {
      pushLoop.look();
      return state.pushes.length === 3;
    });
    expect(state.held?.report).toEqual(report);
  });

  it('that changed while a push was under way is pushed right after it', async () => {
    const { state, send } = createAggregator();
    let release: (() => void) | undefined;
    const pushLoop = start(
      async (push, signal) => {
        if (state.pushes.length === 0) await new Promise<void>((resolve) => (release = resolve));
        return send(push, signal);
      },
      { everyMs: 60_000 },
    );
    await until('a push', () => release !== undefined);
    report = reportOf('changed meanwhile');
    pushLoop.look();
    release!();
    await until('the second push', () => state.pushes.length === 2);
    expect(state.held?.report.problems).toEqual([{ reason: 'R', message: 'changed meanwhile' }]);
  });

  it('is whole again at an aggregator that does not hold it', async () => {
    const { state, send } = createAggregator();
    start(send);
    await until('two pushes', () => state.pushes.length >= 2);
    state.held = undefined;
    await until('the report', () => state.held);
    expect(state.pushes.at(-1)).toHaveProperty('report');
  });

  it('is the latest one after an aggregator was away, and nothing of before is kept', async () => {
    const { state, send } = createAggregator();
    state.isAway = true;
    const pushLoop = start(send);
    for (let change = 0; change < 20; change++) {
      report = reportOf(`change ${change}`);
      pushLoop.look();
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    state.isAway = false;
    await until('the report', () => state.held);
    expect(state.pushes).toHaveLength(1);
    expect(state.held?.report.problems).toEqual([{ reason: 'R', message: 'change 19' }]);
  });

  it('is given up and repeated when the aggregator does not answer', async () => {
    let asked = 0;
    start(
      (_push, signal) =>
        new Promise((_resolve, reject) => {
          asked++;
          signal.addEventListener('abort', () => reject(signal.reason as Error));
        }),
      { deadlineMs: 20 },
    );
    expect(await until('three attempts', () => asked >= 3)).toBe(true);
  });

  it('is not offered again and again where there is no aggregator', async () => {
    let asked = 0;
    start(async () => {
      asked++;
      throw new NoAggregatorError('none');
    });
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(asked).toBe(1);
  });

  it('ends at once, also while a push is under way', async () => {
    const pushLoop = start(() => new Promise(() => undefined), { deadlineMs: 60_000 });
    await new Promise((resolve) => setTimeout(resolve, 10));
    const startedMs = performance.now();
    await pushLoop.stop();
    expect(performance.now() - startedMs).toBeLessThan(1000);
  });
});
