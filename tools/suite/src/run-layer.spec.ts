import { expect, test } from 'vitest';
import { invocationRoot } from './run-layer.ts';

test('the root of a run of Nx is no pid, and that of no earlier run', () => {
  const roots = Array.from({ length: 100 }, () => Number(invocationRoot()));
  for (const root of roots) expect(root).toBeGreaterThanOrEqual(4_194_304); // the largest pid of Linux
  expect(new Set(roots).size).toBe(roots.length);
});
