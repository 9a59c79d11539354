import { expect, test } from 'vitest';
import { createRequestPace, VIEWER_PACE } from './request-pace.ts';

const bed = () => {
  let nowMs = 0;
  const pace = createRequestPace({ ...VIEWER_PACE, elapsed: () => nowMs });
  const taken = (key: string, times: number): number => {
    let count = 0;
    for (let at = 0; at < times; at++) {
      try {
        pace.take(key);
        count++;
      } catch (error) {
        expect(error).toMatchObject({ reason: 'TooManyRequests', headers: { 'Retry-After': '1' } });
      }
    }
    return count;
  };
  return { taken, pass: (ms: number) => (nowMs += ms) };
};

test('so many at once, then so many a second; one user takes nothing of another', () => {
  const { taken, pass } = bed();
  expect(taken('anna', 30)).toBe(20);
  expect(taken('berta', 30)).toBe(20);
  pass(1000);
  expect(taken('anna', 30)).toBe(10);
  pass(60_000);
  expect(taken('anna', 30)).toBe(20);
});

test('what is refused costs nothing: whoever goes on asking is served at the pace', () => {
  const { taken, pass } = bed();
  taken('anna', 20);
  let served = 0;
  for (let step = 0; step < 100; step++) {
    pass(10);
    served += taken('anna', 1);
  }
  expect(served).toBeGreaterThanOrEqual(9);
  expect(served).toBeLessThanOrEqual(10);
});

test('more users than are remembered take nobody’s place', () => {
  const { taken } = bed();
  for (let user = 0; user < 3000; user++) expect(taken(`u${user}`, 1)).toBe(1);
});
