import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Reporter, TestCase, TestModule } from 'vitest/node';
import { absentTests, type KnownFault, readFaults } from '@unbounded/faults/known-faults';
import type { SpecResult } from './results.ts';

/** Vitest's own JSON reporter leaves out the time of imports and hooks, where most of a spec's time can be. */

const MS_PER_SECOND = 1000;

const slowestOf = (tests: readonly TestCase[]): SpecResult['slowestTest'] =>
  tests
    .map((test) => ({ name: test.fullName, seconds: (test.diagnostic()?.duration ?? 0) / MS_PER_SECOND }))
    .toSorted((a, b) => b.seconds - a.seconds)[0];

const fileOf = (module: TestModule): string => relative(process.cwd(), module.moduleId);

/** As faults name tests; also of tests that a run leaves out. A file that cannot be loaded has none. */
const absentIn = (module: TestModule, faults: readonly KnownFault[]): string[] => {
  const names = [...module.children.allTests()].map(({ fullName }) => fullName.replaceAll(' > ', ' '));
  return names.length === 0 ? [] : absentTests(faults, { project: module.project.name, file: fileOf(module), names });
};

const resultOf = (module: TestModule): SpecResult => {
  const { environmentSetupDuration, prepareDuration, collectDuration, setupDuration, duration } = module.diagnostic();
  const tests = [...module.children.allTests()];
  const failed = tests.filter((test) => test.result().state === 'failed').map(({ fullName }) => fullName);
  const file = fileOf(module);
  return {
    file,
    project: module.project.name,
    seconds: (environmentSetupDuration + prepareDuration + collectDuration + setupDuration + duration) / MS_PER_SECOND,
    tests: tests.length,
    // A file that cannot be loaded and a hook that fails have no failed test.
    failed: failed.length === 0 && module.state() === 'failed' ? [file] : failed,
    slowestTest: slowestOf(tests),
    skipped: tests.filter((test) => test.result().state === 'skipped').length,
  };
};

/** Vitest knows nothing of tests that are not there: they are printed here, and fail the run. */
const withAbsent = (result: SpecResult, absent: readonly string[]): SpecResult => {
  for (const problem of absent) console.error(`FAILED ${result.file}: ${problem}`);
  if (absent.length > 0) process.exitCode = 1;
  return { ...result, failed: [...result.failed, ...absent] };
};

/** Writes the results of all spec files of a run to the file that UNBOUNDED_SPEC_RESULTS names, as JSON. */
export default class SpecReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const file = process.env['UNBOUNDED_SPEC_RESULTS'];
    if (file === undefined) throw new Error('UNBOUNDED_SPEC_RESULTS is not set: it must name the file for the results');
    const faults = readFaults(process.cwd());
    const specs = modules.map((module) => withAbsent(resultOf(module), absentIn(module, faults)));
    writeFileSync(file, JSON.stringify({ run: process.env['UNBOUNDED_SPEC_RUN'], specs }));
  }
}
