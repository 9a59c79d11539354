import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AddressSet } from './address-set.ts';
import { containsPrefix, formatPrefix, lastAddress, overlaps, parsePrefix, type Prefix, prefixOf } from './prefix.ts';

const BASE = 0x0a000000n;
const smallPrefix: fc.Arbitrary<Prefix> = fc
  .tuple(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 24, max: 32 }))
  .map(([low, length]) => prefixOf({ family: 4, value: BASE + BigInt(low) }, length));

const holds = (prefix: Prefix, low: number): boolean =>
  prefix.address <= BASE + BigInt(low) && BASE + BigInt(low) <= lastAddress(prefix).value;
/** The model: the set as 256 booleans. */
const members = (prefixes: readonly Prefix[]): boolean[] =>
  Array.from({ length: 256 }, (_, low) => prefixes.some((prefix) => holds(prefix, low)));
const membersOf = (set: AddressSet): boolean[] =>
  Array.from({ length: 256 }, (_, low) => set.has({ family: 4, value: BASE + BigInt(low) }));

describe('AddressSet', () => {
  test('holds a range from its first address to its last', () => {
    const at = (low: number) => ({ family: 4, value: BASE + BigInt(low) }) as const;
    fc.assert(
      fc.property(fc.nat(255), fc.nat(255), (a, b) => {
        const [first, last] = a < b ? [a, b] : [b, a];
        const inside = Array.from({ length: 256 }, (_, low) => first <= low && low <= last);
        expect(membersOf(AddressSet.between(at(first), at(last)))).toEqual(inside);
      }),
    );
    expect(() => AddressSet.between(at(2), at(1))).toThrow(RangeError);
    expect(() => AddressSet.between(at(1), { family: 6, value: BASE + 2n })).toThrow(RangeError);
  });

  test('by longest prefix has an address where the longest that holds it is inside, and none of that length outside', () => {
    const longest = (prefixes: readonly Prefix[], low: number): number =>
      Math.max(-1, ...prefixes.filter((prefix) => holds(prefix, low)).map(({ length }) => length));
    fc.assert(
      fc.property(fc.array(smallPrefix, { maxLength: 8 }), fc.array(smallPrefix, { maxLength: 8 }), (a, b) => {
        const wanted = Array.from({ length: 256 }, (_, low) => longest(a, low) > longest(b, low));
        expect(membersOf(AddressSet.byLongestPrefix(a, b))).toEqual(wanted);
      }),
    );
  });

  test('agrees with a list of addresses in union, subtraction and queries', () => {
    fc.assert(
      fc.property(fc.array(smallPrefix, { maxLength: 12 }), fc.array(smallPrefix, { maxLength: 12 }), (a, b) => {
        const [setA, setB] = [AddressSet.of(a), AddressSet.of(b)];
        const [inA, inB] = [members(a), members(b)];
        expect(membersOf(setA)).toEqual(inA);
        expect(membersOf(setA.union(setB))).toEqual(inA.map((x, i) => x || inB[i]));
        expect(membersOf(setA.subtract(setB))).toEqual(inA.map((x, i) => x && !inB[i]));
        expect(membersOf(AddressSet.of(setA.toPrefixes()))).toEqual(inA);
        for (const prefix of b) {
          expect(setA.overlaps(prefix)).toBe(a.some((p) => overlaps(p, prefix)));
          expect(setA.add(prefix).covers(prefix)).toBe(true);
          expect(setA.remove(prefix).overlaps(prefix)).toBe(false);
        }
      }),
    );
  });

  test('toPrefixes is minimal: no two of them make up a larger block', () => {
    expect(
      AddressSet.of(['10.0.0.0/25', '10.0.0.128/25', '10.0.1.0/24'].map(parsePrefix)).toPrefixes().map(formatPrefix),
    ).toEqual(['10.0.0.0/23']);
  });

  test('the first free block is the lowest aligned one that overlaps nothing taken', () => {
    const pool = parsePrefix('10.0.0.0/24');
    fc.assert(
      fc.property(fc.array(smallPrefix, { maxLength: 10 }), fc.integer({ min: 24, max: 32 }), (taken, length) => {
        const set = AddressSet.of(taken);
        const size = 1 << (32 - length);
        const candidates = Array.from({ length: 256 / size }, (_, i) =>
          prefixOf({ family: 4, value: BASE + BigInt(i * size) }, length),
        );
        expect(set.firstFreeBlock(pool, length)).toEqual(candidates.find((c) => !taken.some((t) => overlaps(t, c))));
      }),
    );
  });

  test('a taken block that is larger than the pool fills it', () => {
    expect(AddressSet.of([parsePrefix('10.0.0.0/8')]).firstFreeBlock(parsePrefix('10.1.0.0/16'), 24)).toBeUndefined();
  });

  test('blocks of a /48 IPv6 pool do not overlap each other', () => {
    const pool = parsePrefix('fd00:64::/48');
    let taken = AddressSet.empty;
    for (let i = 0; i < 300; i++) {
      const block = taken.firstFreeBlock(pool, 64)!;
      expect(taken.overlaps(block)).toBe(false);
      expect(containsPrefix(pool, block)).toBe(true);
      taken = taken.add(block);
    }
    expect(taken.toPrefixes().map(formatPrefix)[0]).toBe('fd00:64::/56');
  });

  test('a block larger than its pool is an error', () => {
    expect(() => AddressSet.empty.firstFreeBlock(parsePrefix('10.0.0.0/24'), 16)).toThrow(RangeError);
  });
});
