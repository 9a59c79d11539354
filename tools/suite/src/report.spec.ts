import { expect, test } from 'vitest';
import { failureCounts } from './flaky.ts';
import { REFERENCE, slownessOf } from './machine-speed.ts';
import { failureLines, isOverBudget, slowestLines, table } from './report.ts';
import type { LayerResult, SpecResult } from './results.ts';

const spec = (file: string, seconds: number, failed: readonly string[] = []): SpecResult => ({
  ...{ file, seconds, failed, project: 'kernel', tests: 4, skipped: 0 },
  slowestTest: { name: 'a frame arrives', seconds: seconds / 2 },
});
const kernel: LayerResult = {
  ...{ layer: 'kernel', passed: true, wallSeconds: 100, processorSeconds: 150, budgetSeconds: 80, slowness: 1 },
  specs: [spec('a.kernel.spec.ts', 30), spec('b.kernel.spec.ts', 70.4)],
};
const late = { ...kernel, wallSeconds: 121 };
const failed: LayerResult = {
  ...{ ...kernel, passed: false },
  specs: [spec('a.kernel.spec.ts', 30, ['a route is added', 'a route goes'])],
};

test('the table has a row for each layer, and the sum', () => {
  expect(table([kernel], 2).split('\n')).toEqual([
    'layer   wall s  budget s  processors  tests',
    'kernel     100        80        75 %      8  passed',
    'all        100                  75 %      8  passed',
  ]);
});

test('a layer that was not run anew says so', () => {
  const cached = { ...kernel, layer: 'vm', wallSeconds: 2, processorSeconds: 1, isCached: true };
  expect(table([cached], 2)).toMatch(/^vm .* 80 .* 8  passed before, unchanged$/m);
});

test('half as long again as its budget is still within it; more fails, with its slowest specs and tests', () => {
  expect(isOverBudget({ ...kernel, wallSeconds: 120 })).toBe(false);
  expect(isOverBudget(late)).toBe(true);
  expect(failureLines([late])).toEqual([
    'OVER BUDGET kernel: 121 s, at most 120 s; slowest:',
    '      70 s  b.kernel.spec.ts (4 tests)',
    '          35 s  a frame arrives',
    '      30 s  a.kernel.spec.ts (4 tests)',
    '          15 s  a frame arrives',
  ]);
  expect(table([late], 2)).toContain('OVER BUDGET');
});

test('on a machine that is half as fast a layer may take twice as long', () => {
  expect(isOverBudget({ ...kernel, wallSeconds: 230, slowness: 2 })).toBe(false);
  expect(slownessOf({ ...REFERENCE, computingMs: REFERENCE.computingMs * 2 }, 2)).toBe(2);
  expect(slownessOf(REFERENCE, 1)).toBe(2);
  expect(slownessOf({ computingMs: 1, readingMs: 1 }, 64)).toBe(1);
});

test('one that computes as fast and reads memory half as fast is half as fast', () => {
  expect(slownessOf({ ...REFERENCE, readingMs: REFERENCE.readingMs * 2 }, 2)).toBe(2);
});

test('tests that failed are named, and so is a layer that failed without one', () => {
  expect(failureLines([failed])).toEqual([
    'FAILED a.kernel.spec.ts: a route is added',
    'FAILED a.kernel.spec.ts: a route goes',
  ]);
  expect(failureLines([{ ...kernel, passed: false }])).toEqual(['FAILED kernel']);
});

test('the slowest specs come first', () => {
  expect(slowestLines([kernel], 1)).toEqual(['    70 s  b.kernel.spec.ts (4 tests)']);
});

test('failures of many runs are counted, most often first', () => {
  const runs = [kernel, failed, { ...failed, specs: [spec('a.kernel.spec.ts', 30, ['a route goes'])] }];
  expect(failureCounts(runs)).toEqual([
    '2 of 3  a.kernel.spec.ts: a route goes',
    '1 of 3  a.kernel.spec.ts: a route is added',
  ]);
  expect(failureCounts([{ ...kernel, passed: false, specs: [] }])).toEqual(['1 of 1  kernel: the runner failed']);
});
