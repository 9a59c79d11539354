import { expect, test } from 'vitest';
import { readReport } from './conformance.ts';

test('specs that passed, failed or gave up are told apart, and those that were not asked for are left out', () => {
  const report = `<testsuite>
    <testcase name="[It] a &lt;b&gt;" classname="e2e" status="passed" time="1.5"><system-err></system-err></testcase>
    <testcase name="[It] c" classname="e2e" status="failed" time="2"><failure message="no"></failure></testcase>
    <testcase name="[It] d" classname="e2e" status="skipped" time="0.1">
      <skipped message="skipped - Requires at least 2 nodes (not -1)"></skipped></testcase>
    <testcase name="[It] e" classname="e2e" status="skipped" time="0"><skipped message="skipped"></skipped></testcase>
    <testcase name="[SynchronizedBeforeSuite]" classname="e2e" status="passed" time="3"></testcase>
  </testsuite>`;
  expect(readReport(report)).toEqual([
    { name: 'a <b>', passed: true, seconds: 1.5 },
    { name: 'c', passed: false, seconds: 2 },
    { name: 'd', passed: false, seconds: 0.1, skipped: 'Requires at least 2 nodes (not -1)' },
  ]);
});
