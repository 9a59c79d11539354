import { join } from 'node:path';
import { randomOf } from '@unbounded/testing/seeded-random';
import { expect, test } from 'vitest';
import { mutate } from './mutate.ts';
import { runNative } from './run-native.ts';
import { runTypeScript } from './run-typescript.ts';

/** A search is worth what it finds: mistakes that are planted here. */

const planted = (file: string): string => join(import.meta.dirname, 'planted', file);
const RUNS = 60_000;
const request = { corpus: [], seed: 4, seconds: 200, runs: RUNS };

test('a read behind the end is found by coverage, and not without it', { timeout: 240_000 }, async () => {
  const file = planted('planted.fuzz.ts');
  // Some thousand runs are enough with guidance.
  const guided = await runTypeScript({ ...request, file });
  expect(guided.finding?.error ?? `${guided.runs} runs`).toContain('RangeError');
  expect([...(guided.finding?.input.subarray(0, 2) ?? [])]).toEqual([0x55, 0x42]);
  // What Node has kept of the code that it compiled does not change what is seen.
  const again = await runTypeScript({ ...request, file });
  expect([again.runs, again.features]).toEqual([guided.runs, guided.features]);
  const blind = await runTypeScript({ ...request, file, runs: 20_000, guided: false });
  expect(blind.finding).toBeUndefined();
});

test('an input that never comes to an end is a finding', { timeout: 120_000 }, async () => {
  const { finding } = await runTypeScript({ ...request, file: planted('hang.fuzz.ts'), hangMs: 3000 });
  expect(finding?.error).toContain('did not return');
  expect(finding?.input.includes(0)).toBe(true);
});

test('in C a read behind the end is found', { timeout: 120_000 }, () => {
  const { finding } = runNative({ file: planted('planted.fuzz.c'), seed: 1, corpus: [], seconds: 60 });
  expect(finding?.error).toContain('AddressSanitizer: heap-buffer-overflow');
  expect(new TextDecoder().decode(finding?.input.subarray(0, 2))).toBe('UB');
});

test('the same seed changes an input in the same ways, and within its bound', () => {
  const inputs = (seed: number): Uint8Array[] => {
    const random = randomOf(seed);
    const sources = { random, tokens: [Uint8Array.of(1, 2, 3)], others: [new Uint8Array(30)] };
    return Array.from({ length: 500 }, () => mutate(new Uint8Array(20), sources, 40));
  };
  expect(inputs(7)).toEqual(inputs(7));
  expect(inputs(7)).not.toEqual(inputs(8));
  expect(inputs(7).filter(({ length }) => length > 40)).toEqual([]);
});
