import { formatPrefix, overlaps, parsePrefix, prefixOf } from '@unbounded/ip';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { findConflicts } from './block-conflicts.plan.ts';

const owned = (owner: string, cidr: string) => ({ owner, rank: owner, prefix: parsePrefix(cidr) });

test('blocks of one owner are no conflict, also when another’s lies between them', () => {
  expect(findConflicts([owned('a', '10.0.0.0/8'), owned('a', '10.1.0.0/16')])).toEqual([]);
  expect(findConflicts([owned('a', '10.0.0.0/8'), owned('b', '10.1.0.0/16'), owned('a', '10.1.1.0/24')])).toHaveLength(
    2,
  );
});

const block = fc
  .record({
    owner: fc.constantFrom('a', 'b', 'c', 'd'),
    value: fc.bigInt(0n, 255n),
    length: fc.integer({ min: 24, max: 32 }),
  })
  .map(({ owner, value, length }) => owned(owner, formatPrefix(prefixOf({ family: 4, value }, length))));

test('a conflict is found exactly when two owners overlap, and a reported pair does overlap', () => {
  fc.assert(
    fc.property(fc.array(block, { maxLength: 12 }), (blocks) => {
      const conflicts = findConflicts(blocks);
      const isAny = blocks.some((a) => blocks.some((b) => a.owner !== b.owner && overlaps(a.prefix, b.prefix)));
      expect(conflicts.length > 0).toBe(isAny);
      for (const { cidr, otherCidr, owner, other } of conflicts) {
        expect(overlaps(parsePrefix(cidr), parsePrefix(otherCidr))).toBe(true);
        expect(other < owner).toBe(true);
      }
    }),
  );
});
