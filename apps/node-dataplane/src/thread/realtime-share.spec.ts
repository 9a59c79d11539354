import { expect, test } from 'vitest';
import { BY_NICENESS_MS, scheduleWithinShare, type ShareSources } from './realtime-share.ts';
import type { Scheduled, Wish } from './scheduling.ts';

const WISH: Wish = { isRealtime: true, niceness: -20 };

/** A thread that takes these shares of a processor, second by second. */
const threadOf = (permitted: Scheduled = { scheduling: 'realtime' }, given: { readonly cannotEnd?: boolean } = {}) => {
  const calls: string[] = [];
  let [cpuMs, nowMs] = [0, 0];
  const sources: ShareSources = {
    cpuMs: () => cpuMs,
    nowMs: () => nowMs,
    schedule({ isRealtime }) {
      calls.push(isRealtime ? 'realtime' : 'niceness');
      return isRealtime ? permitted : { scheduling: 'niceness' };
    },
    endRealtime() {
      if (given.cannotEnd) throw new Error('ENOENT');
      calls.push('end');
    },
  };
  const share = scheduleWithinShare(WISH, sources);
  return {
    calls,
    share,
    /** @param elapsedMs since the last look */
    takes(cpu: number, elapsedMs = 1000): Scheduled | undefined {
      cpuMs += cpu * elapsedMs;
      nowMs += elapsedMs;
      return share.check();
    },
  };
};

test('a thread that takes little stays real-time', () => {
  const thread = threadOf();
  for (let second = 0; second < 100; second++) expect(thread.takes(0.5)).toBeUndefined();
  expect(thread.share.scheduled).toEqual({ scheduling: 'realtime' });
  expect(thread.calls).toEqual(['realtime']);
});

/** Each second of three. */
const takesTooMuch = (thread: ReturnType<typeof threadOf>): (Scheduled | undefined)[] =>
  [0.9, 0.8, 0.9].map((share) => thread.takes(share));
const LIMITED = {
  scheduling: 'niceness',
  error: 'it took 90 % of a processor, at most 50 % as a real-time thread',
} as const;

test('one that took more than half of a processor for three seconds is scheduled by niceness, and the reason is told', () => {
  const thread = threadOf();
  expect(takesTooMuch(thread)).toEqual([undefined, undefined, LIMITED]);
  expect(thread.calls).toEqual(['realtime', 'end', 'niceness']);
});

test('what takes long now and then, as the keys of a first plan, counts for nothing', () => {
  const thread = threadOf();
  for (let second = 0; second < 100; second++) expect(thread.takes(second % 3 === 0 ? 0.1 : 0.9)).toBeUndefined();
});

test('it is real-time again after a minute, and by niceness again if it still takes as much', () => {
  const thread = threadOf();
  takesTooMuch(thread);
  expect(thread.takes(0.9, BY_NICENESS_MS - 1)).toBeUndefined();
  expect(thread.takes(0.9, 1)).toEqual({ scheduling: 'realtime' });
  expect(takesTooMuch(thread)).toEqual([undefined, undefined, LIMITED]);
  expect(thread.calls).toEqual(['realtime', 'end', 'niceness', 'realtime', 'end', 'niceness']);
});

test('where it cannot be taken back, it stays, and that is tried again', () => {
  const thread = threadOf(undefined, { cannotEnd: true });
  expect([...takesTooMuch(thread), ...takesTooMuch(thread)]).toEqual(Array.from({ length: 6 }, () => undefined));
  expect(thread.calls).toEqual(['realtime']);
});

test('a late look is no large share: what counts is the time that has passed', () => {
  expect(threadOf().takes(0.1, 20_000)).toBeUndefined();
});

test('where real-time scheduling is not permitted, nothing is tried again', () => {
  const thread = threadOf({ scheduling: 'niceness', error: 'Operation not permitted' });
  expect(thread.takes(1, 10 * BY_NICENESS_MS)).toBeUndefined();
  expect(thread.calls).toEqual(['realtime']);
});
