import { BpfError, type BpfMap, type MapInfo } from '@unbounded/libbpf-ts';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { removeStaleEntries, writeEntries } from './map-sync.ts';

const E2BIG = 7;
const EPERM = 1;

interface Value {
  readonly a: number;
  readonly b?: string | undefined;
}

/** A map in memory that counts writes and refuses what does not fit, as the kernel does. */
const memoryMap = (entries: Iterable<[string, Value]>, maxEntries = 100, errno = E2BIG) => {
  const held = new Map(entries);
  let writes = 0;
  const map = {
    info: { maxEntries } as MapInfo,
    get: (key: string) => held.get(key),
    set(key: string, value: Value) {
      if (!held.has(key) && held.size >= maxEntries) throw new BpfError('map', { errno, code: '' });
      held.set(key, value);
      writes++;
    },
    delete: (key: string) => held.delete(key),
    entries: () => new Map(held).entries(),
  } as unknown as BpfMap<string, Value>;
  return { map, held, writes: () => writes };
};

const contents = fc
  .dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.record({ a: fc.integer() }))
  .map((object) => new Map(Object.entries(object)));

describe('bringing a map to its contents', () => {
  test('it holds what is wanted, at first besides what was there; the second time nothing is written', () => {
    fc.assert(
      fc.property(contents, contents, (before, wanted) => {
        const { map, held, writes } = memoryMap(before);
        writeEntries('m', map, wanted);
        for (const key of before.keys()) expect(held.has(key)).toBe(true);
        removeStaleEntries(map, wanted);
        expect(held).toEqual(wanted);
        const soFar = writes();
        expect(writeEntries('m', map, wanted)).toEqual({ written: 0, problems: [] });
        expect(writes()).toBe(soFar);
      }),
    );
  });

  test('the order of fields, and fields that are undefined, are no difference', () => {
    const { map, writes } = memoryMap([
      ['k', { b: 'x', a: 1 }],
      ['l', { a: 2, b: undefined }],
    ]);
    writeEntries(
      'm',
      map,
      new Map([
        ['k', { a: 1, b: 'x' }],
        ['l', { a: 2 }],
      ]),
    );
    expect(writes()).toBe(0);
  });

  test('a full map keeps what it holds, takes changes of that, and the problem names map, size and what is missing', () => {
    const { map, held } = memoryMap(
      [
        ['a', { a: 1 }],
        ['b', { a: 2 }],
      ],
      2,
    );
    const { written, problems } = writeEntries(
      'endpoints',
      map,
      new Map([
        ['x', { a: 9 }],
        ['y', { a: 9 }],
        ['b', { a: 3 }],
      ]),
    );
    expect(written).toBe(1);
    expect(held).toEqual(
      new Map([
        ['a', { a: 1 }],
        ['b', { a: 3 }],
      ]),
    );
    expect(problems).toEqual([
      { reason: 'MapFull', message: 'map endpoints is full with 2 entries: 2 more do not fit (the first is x)' },
    ]);
  });

  test('any other failure is thrown', () => {
    const { map } = memoryMap([], 0, EPERM);
    expect(() => writeEntries('m', map, new Map([['a', { a: 1 }]]))).toThrow(BpfError);
  });
});
