import { expect, test } from 'vitest';
import { fuzz } from './fuzz.ts';
import { harnesses } from './targets.ts';

/** `tools/test fuzz [SECONDS]`: all harnesses, each for its share of the time. FUZZ_SEED chooses another search. */

const all = harnesses();
const seconds = Number(process.env['FUZZ_SECONDS'] ?? 20) / all.length;
const seed = Number(process.env['FUZZ_SEED'] ?? 1);

test.each(all)('$name: no input breaks it', { timeout: seconds * 1000 + 120_000 }, async (harness) => {
  const { runs, features, finding, reproduce } = await fuzz(harness, { seconds, seed, write: false });
  console.log(`${harness.name}: ${runs} runs, ${features} features, seed ${seed}`);
  expect(finding?.error, `run it again: ${reproduce}`).toBeUndefined();
  expect(runs).toBeGreaterThan(0);
});
