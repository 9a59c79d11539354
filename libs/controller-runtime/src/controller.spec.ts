import { ApiError } from '@unbounded/kube';
import { createLogger, createMetrics, silentLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';

import { createController, type Source } from './controller.ts';
import { inParallel } from './in-parallel.ts';
import { again, done, reject, type Verdict } from './verdict.ts';

const setUp = (
  reconcile: (key: string, turn: number) => Verdict | Promise<Verdict>,
  keys: readonly string[] = ['a'],
  logger = silentLogger,
) => {
  let enqueue: (key: string) => void = () => {};
  const source: Source = { connect: (callback) => (enqueue = callback), keys: () => keys };
  const metrics = createMetrics();
  const turns: string[] = [];
  const controller = createController({
    name: 'test',
    sources: [source],
    reconcile: async (key) => {
      turns.push(key);
      return reconcile(key, turns.filter((other) => other === key).length);
    },
    backoff: { baseMs: 1, maxMs: 2 },
    logger,
    metrics,
  });
  return { controller, metrics, turns, enqueue: (key: string) => enqueue(key) };
};

test('every key that the sources know is worked on when work begins', async () => {
  const stop = new AbortController();
  const { controller, turns } = setUp(
    (key) => {
      if (key === 'b') stop.abort();
      return done;
    },
    ['a', 'b'],
  );
  await controller.run(stop.signal);
  expect(turns).toEqual(['a', 'b']);
});

test('an error brings the key back, others go on meanwhile, and both are counted', async () => {
  const stop = new AbortController();
  const { controller, turns, metrics } = setUp(
    (key, turn) => {
      if (key === 'bad' && turn < 3) throw new Error('not yet');
      if (key === 'bad') stop.abort();
      return done;
    },
    ['bad', 'good'],
  );
  await controller.run(stop.signal);
  expect(turns.slice(0, 2)).toEqual(['bad', 'good']);
  const text = await metrics.render();
  expect(text).toContain('controller_runtime_reconcile_total{controller="test",result="error"} 2');
  expect(text).toContain('workqueue_retries_total{name="test"} 2');
});

test('a conflict is told in one line without a stack, for who asks for it; another error is a warning', async () => {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };
  const stop = new AbortController();
  const { controller } = setUp(
    (_key, turn) => {
      const conflict = new ApiError('PATCH /nodes/n', 409, { reason: 'Conflict' });
      if (turn === 1) throw conflict;
      if (turn === 2) throw new AggregateError([conflict, conflict], '2 of 2 failed');
      if (turn === 3) throw new AggregateError([conflict, new Error('broken')], '2 of 2 failed');
      stop.abort();
      return done;
    },
    ['a'],
    createLogger({ name: 'test', level: 'debug', destination }),
  );
  await controller.run(stop.signal);
  expect(lines).toMatchObject([
    { level: 'debug', msg: 'conflict, retried', reason: 'PATCH /nodes/n: 409 Conflict' },
    { level: 'debug', msg: 'conflict, retried', reason: 'PATCH /nodes/n: 409 Conflict; PATCH /nodes/n: 409 Conflict' },
    { level: 'warn', msg: 'reconcile failed' },
  ]);
  expect(lines[0]).not.toHaveProperty('err');
});

test('a rejected key does not come back by itself; "again" does', async () => {
  const stop = new AbortController();
  const { controller, turns } = setUp(
    (key, turn) => {
      if (key === 'wrong') return reject('never');
      if (turn === 3) stop.abort();
      return again(1);
    },
    ['wrong', 'timer'],
  );
  await controller.run(stop.signal);
  expect(turns.filter((key) => key === 'wrong')).toHaveLength(1);
  expect(turns.filter((key) => key === 'timer')).toHaveLength(3);
});

test('changes while nobody leads are not queued; the next term starts from what the sources know', async () => {
  const first = new AbortController();
  const { controller, turns, enqueue } = setUp(() => {
    first.abort();
    return done;
  });
  enqueue('early');
  await controller.run(first.signal);
  enqueue('between');
  expect(turns).toEqual(['a']);
});

test('ending waits for the reconcile that runs', async () => {
  const stop = new AbortController();
  const gate = Promise.withResolvers<void>();
  let ended = false;
  const { controller } = setUp(async () => {
    stop.abort();
    await gate.promise;
    ended = true;
    return done;
  });
  const run = controller.run(stop.signal);
  await Promise.resolve();
  gate.resolve();
  await run;
  expect(ended).toBe(true);
});

test('parallel work tries everything, keeps the limit and reports all errors', async () => {
  let [running, most] = [0, 0];
  const seen: number[] = [];
  const attempt = inParallel([1, 2, 3, 4, 5], 2, async (item) => {
    most = Math.max(most, ++running);
    await Promise.resolve();
    running--;
    seen.push(item);
    if (item % 2 === 0) throw new Error(`no ${item}`);
  });
  await expect(attempt).rejects.toMatchObject({ errors: [{ message: 'no 2' }, { message: 'no 4' }] });
  expect(seen).toEqual([1, 2, 3, 4, 5]);
  expect(most).toBe(2);
});
