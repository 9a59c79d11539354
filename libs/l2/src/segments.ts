import type { Network } from '@unbounded/crds';

/** Segments of a Network as numbers, which stand in the maps of one node and in no frame. */

/** Endpoints without a segment are in one of their own. */
const UNNAMED = 0;

export type SegmentPair = readonly [from: number, to: number];

export const segmentNumbers = ({ spec }: Network): ReadonlyMap<string | undefined, number> => {
  const names = (spec.segments ?? []).map(({ name }) => name).sort();
  return new Map<string | undefined, number>([
    [undefined, UNNAMED],
    ...names.map((name, at) => [name, at + 1] as const),
  ]);
};

/** In both directions: who is asked has to be able to answer. */
export const segmentPairs = (
  { spec }: Network,
  numbers: ReadonlyMap<string | undefined, number>,
): readonly SegmentPair[] => {
  const pairs = (spec.segments ?? []).flatMap(({ name, reaches = [] }) =>
    reaches.flatMap((other): SegmentPair[] => {
      const [from, to] = [numbers.get(name), numbers.get(other)];
      if (from === undefined || to === undefined || from === to) return [];
      return [
        [from, to],
        [to, from],
      ];
    }),
  );
  return [...new Map(pairs.map((pair) => [pair.join(), pair])).values()].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
};
