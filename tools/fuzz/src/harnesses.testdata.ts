import { expect, test } from 'vitest';
import { fuzz } from './fuzz.ts';
import { type Harness, harnesses } from './targets.ts';

/** All harnesses share the time of `tools/test fuzz SECONDS`. FUZZ_SEED chooses another search. */
const all = harnesses();
const seconds = Number(process.env['FUZZ_SECONDS'] ?? 20) / all.length;
const seed = Number(process.env['FUZZ_SEED'] ?? 1);

export const testHarnesses = (language: Harness['language']): void => {
  const ofLanguage = all.filter((harness) => harness.language === language);
  test.each(ofLanguage)('$name: no input breaks it', { timeout: seconds * 1000 + 120_000 }, async (harness) => {
    const { runs, features, finding, reproduce } = await fuzz(harness, { seconds, seed, write: false });
    console.log(`${harness.name}: ${runs} runs, ${features} features, seed ${seed}`);
    expect(finding?.error, `run it again: ${reproduce}`).toBeUndefined();
    expect(runs).toBeGreaterThan(0);
  });
};
