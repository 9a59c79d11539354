import { BpfError, type BpfMap } from '@unbounded/libbpf-ts';
import { expect, test } from 'vitest';
import { syncEntries } from './map-entries.ts';

interface Key {
  readonly network: number;
  readonly mac: string;
}

const E2BIG = 7;

/** A map that keeps values by the text of their keys, and counts writes. */
const openMap = (entries: readonly (readonly [Key, object])[], maxEntries = 8) => {
  const held = new Map(entries.map(([key, value]) => [JSON.stringify(key), { key, value }]));
  const bed = { written: 0, held: () => [...held.values()].map(({ key, value }) => [key.mac, value]) };
  const map = {
    info: { maxEntries },
    set(key: Key, value: object) {
      if (held.size >= maxEntries) throw new BpfError('map', { errno: E2BIG, code: 'E2BIG' });
      bed.written++;
      held.set(JSON.stringify(key), { key, value });
    },
    delete: (key: Key) => held.delete(JSON.stringify(key)),
    entries: () => [...held.values()].map(({ key, value }) => [key, value] as [Key, object]).values(),
  } as unknown as BpfMap<Key, object>;
  return Object.assign(bed, { map });
};

const entry = (mac: string, value: object): readonly [Key, object] => [{ network: 7, mac }, value];

test('what is right is not written again, in whatever order its fields stand', () => {
  const bed = openMap([entry('a', { segment: 1, sequence: 5n })]);
  syncEntries('fdb', bed.map, [entry('a', { sequence: 5n, segment: 1 }), entry('b', { segment: 2 })]);
  expect(bed.written).toBe(1);
  syncEntries('fdb', bed.map, [entry('a', { segment: 1, sequence: 6n })]);
  expect(bed.written).toBe(2);
});

test('what is not wanted any more goes when that is called for', () => {
  const bed = openMap([entry('a', {}), entry('b', {})]);
  const synced = syncEntries('fdb', bed.map, [entry('b', {})]);
  expect(bed.held().map(([mac]) => mac)).toEqual(['a', 'b']);
  synced.removeStale();
  expect(bed.held().map(([mac]) => mac)).toEqual(['b']);
});

test('values that the kernel keeps are left alone', () => {
  const bed = openMap([entry('a', { full: 3 })]);
  syncEntries('buckets', bed.map, [entry('a', { full: 0 }), entry('b', { full: 0 })], { keepsValues: true });
  expect(bed.held()).toEqual([
    ['a', { full: 3 }],
    ['b', { full: 0 }],
  ]);
});

test('a full map is a problem that says how many do not fit, and what is in it stays', () => {
  const bed = openMap([entry('a', {})], 1);
  const { problems } = syncEntries('fdb', bed.map, [entry('a', {}), entry('b', {}), entry('c', {})]);
  expect(problems).toMatchObject([{ reason: 'MapFull', message: expect.stringContaining('1 entries: 2 more') }]);
  expect(bed.held()).toHaveLength(1);
});
