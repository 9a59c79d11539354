import fc from 'fast-check';
import { expect, it } from 'vitest';
import { selectSmallest } from './select-smallest.ts';

it('finds what would stand at each index of the values in order, also among equal ones', () => {
  const values = fc.array(fc.oneof(fc.double({ noNaN: true }), fc.constantFrom(0, 1, 2)), {
    minLength: 1,
    maxLength: 60,
  });
  fc.assert(
    fc.property(values, (some) => {
      const ordered = Float64Array.from(some).sort();
      for (const [index, value] of ordered.entries())
        expect(selectSmallest(Float64Array.from(some), index) === value).toBe(true);
    }),
  );
});
