import { formatPrefix, parsePrefix } from '@unbounded/ip';
import { expect, test } from 'vitest';

import { createCooldown } from './cooldown.ts';

test('a released block cools down for its time, each for its own', () => {
  const clock = { ms: 0 };
  const cooldown = createCooldown(60_000, () => clock.ms);
  const cooling = () => cooldown.cooling().map(formatPrefix);
  cooldown.released([parsePrefix('100.64.0.0/24')]);
  clock.ms = 30_000;
  cooldown.released([parsePrefix('100.64.1.0/24')]);
  clock.ms = 59_999;
  expect(cooling()).toEqual(['100.64.0.0/24', '100.64.1.0/24']);
  clock.ms = 60_000;
  expect(cooling()).toEqual(['100.64.1.0/24']);
  clock.ms = 90_000;
  expect(cooling()).toEqual([]);
});
