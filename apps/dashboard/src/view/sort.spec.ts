import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatSort, nextSort, parseSort, type Sort, sortRows } from './sort.ts';

const USUAL: Sort = { by: 'name', isDescending: false };

test('a sort is read back as it was written', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-zA-Z]\w*$/), fc.boolean(), (by, isDescending) => {
      expect(parseSort(formatSort({ by, isDescending }), USUAL)).toEqual({ by, isDescending });
    }),
  );
  expect([parseSort(undefined, USUAL), parseSort('', USUAL), parseSort('-', USUAL)]).toEqual([USUAL, USUAL, USUAL]);
});

test('a click on the header turns the direction', () => {
  expect(nextSort(USUAL, 'name')).toEqual({ by: 'name', isDescending: true });
  expect(nextSort(USUAL, 'rtt')).toEqual({ by: 'rtt', isDescending: false });
});

const rows = [
  { name: 'n10', rtt: 3 },
  { name: 'n2', rtt: undefined },
  { name: 'n1', rtt: 30 },
  { name: 'n3', rtt: 3 },
];
const names = (by: (row: (typeof rows)[number]) => string | number | undefined, isDescending: boolean) =>
  sortRows(rows, by, ({ name }) => name, isDescending).map(({ name }) => name);

test('numbers are by size, names as people count, and what is unknown is last', () => {
  expect(names(({ rtt }) => rtt, false)).toEqual(['n3', 'n10', 'n1', 'n2']);
  expect(names(({ rtt }) => rtt, true)).toEqual(['n1', 'n3', 'n10', 'n2']);
  expect(names(({ name }) => name, false)).toEqual(['n1', 'n2', 'n3', 'n10']);
});

test('sorting loses and changes nothing', () => {
  const row = fc.record({ name: fc.string(), rtt: fc.option(fc.float({ noNaN: true }), { nil: undefined }) });
  fc.assert(
    fc.property(fc.array(row), fc.boolean(), (some, isDescending) => {
      const sorted = sortRows(
        some,
        ({ rtt }) => rtt,
        ({ name }) => name,
        isDescending,
      );
      expect(new Set(sorted)).toEqual(new Set(some));
      expect(sorted).toHaveLength(some.length);
    }),
  );
});
