import fc from 'fast-check';
import { expect, test } from 'vitest';

import { placeKeys } from './slice-placement.ts';

const slots = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 3 }), { maxLength: 40 });

test('keys stay in their slices, no slice is too large, and only what comes or goes changes one', () => {
  fc.assert(
    fc.property(slots, slots, fc.integer({ min: 1, max: 5 }), (before, after, capacity) => {
      const first = placeKeys(before.toSorted(), new Map(), capacity);
      const second = placeKeys(after.toSorted(), first, capacity);
      for (const key of after) if (first.has(key)) expect(second.get(key)).toBe(first.get(key));
      const sizes = Map.groupBy(second.values(), (slice) => slice);
      for (const own of sizes.values()) expect(own.length).toBeLessThanOrEqual(capacity);
      expect(second.size).toBe(after.length);
    }),
  );
});
