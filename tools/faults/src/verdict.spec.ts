import { expect, test } from 'vitest';
import type { Run, TestOutcome } from './test-run.ts';
import { badCatcher, missedBy } from './verdict.ts';

const catcher = { project: 'unit', file: 'a.spec.ts', test: 'it works' };
const outcome = (error: string, changes: Partial<TestOutcome> = {}): TestOutcome => ({
  project: 'unit',
  file: 'a.spec.ts',
  name: 'a group it works for 4',
  passed: error === '',
  error,
  ...changes,
});
const run = (...outcomes: TestOutcome[]): Run => ({ outcomes, output: '' });
const ASSERTION = 'AssertionError: expected 1 to be 2\n    at a.spec.ts:1';

test.each([
  ASSERTION,
  'Error: Property failed after 3 tests',
  'Error: Snapshot `a 1` mismatched',
  'Error: promise rejected "Error: no" instead of resolving',
  'Error: not within 15000 ms: the second report',
])('a fault is caught by %j', (error) => {
  expect(missedBy(catcher, run(outcome(''), outcome(error)))).toBeUndefined();
});

test.each<[string, TestOutcome[], string]>([
  ['passes', [outcome('')], 'passes with the fault in place'],
  ['cannot be read', [], 'did not run: no test has this name'],
  ['is in another file', [outcome(ASSERTION, { file: 'b.spec.ts' })], 'did not run'],
  ['meets a mistake of the patch', [outcome('ReferenceError: x is not defined')], 'fails, but not by an expectation'],
  [
    'meets one within a property',
    [outcome('Error: Property failed after 1 tests\nTypeError: x is not a function')],
    'not by an expectation',
  ],
  [
    'takes too long',
    [outcome('Error: Test timed out in 60000ms.')],
    'fails, but not by an expectation: Error: Test timed',
  ],
])('a fault gets by a test that %s', (_, outcomes, why) => {
  expect(missedBy(catcher, run(...outcomes))).toContain(why);
});

test('a test is good when all that have its name pass without the fault', () => {
  expect(badCatcher(catcher, run(outcome(''), outcome(ASSERTION, { name: 'another' })))).toBeUndefined();
  expect(badCatcher(catcher, run(outcome(''), outcome(ASSERTION)))).toBe(
    'unit:a.spec.ts -t "it works" fails without any fault: AssertionError: expected 1 to be 2',
  );
  expect(badCatcher(catcher, { outcomes: [], output: 'SyntaxError: …' })).toContain('did not run: SyntaxError: …');
});
