import { expect, test } from 'vitest';
import { createRestartCount } from './restart-count.ts';

/** What the keeper says of one pod, reading by reading: its starts, or netns and starts. */
type Reading = number | undefined | readonly [netns: string, starts: number];

const countsOf = (readings: readonly Reading[]): number[] => {
  const restartsIn = createRestartCount();
  return readings.map((reading) => {
    const [netns, starts] = typeof reading === 'object' ? reading : (['a', reading] as const);
    return restartsIn([{ podUID: 'u', keeper: starts === undefined ? undefined : { netns, hasIPv6: true, starts } }]);
  });
};

test.each<[what: string, readings: readonly Reading[], restarts: readonly number[]]>([
  ['the first start is none', [undefined, 0, 1, 1], [0, 0, 0, 0]],
  ['each further one is', [1, 2, 2, 5], [0, 1, 0, 3]],
  ['between two readings a first one and others', [0, 3], [0, 2]],
  ['what an agent before this one saw is not counted', [7, 8], [0, 1]],
  ['by the next keeper the process is started again', [4, 1, 2], [0, 1, 1]],
  ['also where its beginning was seen', [4, 0, 1], [0, 0, 1]],
  ['a keeper that does not answer for a while changes nothing', [4, undefined, 5], [0, 0, 1]],
  [
    'the next container of the pod begins anew',
    [
      ['a', 4],
      ['b', 0],
      ['b', 1],
      ['b', 2],
    ],
    [0, 0, 0, 1],
  ],
])('%s', (_, readings, restarts) => {
  expect(countsOf(readings)).toEqual(restarts);
});

test('a pod that is gone is forgotten', () => {
  const restartsIn = createRestartCount();
  const of = (starts: number) => [{ podUID: 'u', keeper: { netns: 'a', hasIPv6: true, starts } }];
  expect([restartsIn(of(2)), restartsIn([]), restartsIn(of(5))]).toEqual([0, 0, 0]);
});
