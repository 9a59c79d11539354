import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Catcher } from './patch-file.ts';

/** Runs named tests in a copy of the tree. */

export interface TestOutcome {
  readonly project: string;
  /** From the top of the tree. */
  readonly file: string;
  /** With the names of the groups that it is in. */
  readonly name: string;
  readonly passed: boolean;
  /** Why it failed, the first error. */
  readonly error: string;
}

export interface Run {
  readonly outcomes: readonly TestOutcome[];
  /** Of the test runner; for when a test that should have run did not. */
  readonly output: string;
}

/** What vitest's JSON reporter writes, as far as it is read here. */
interface JsonReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages?: readonly string[];
    }[];
  }[];
}

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);

const runProject = (folder: string, project: string, catchers: readonly Catcher[]): Run => {
  const report = join(folder, 'faults-report.json');
  const files = [...new Set(catchers.map(({ file }) => file))];
  const names = [...new Set(catchers.map(({ test }) => escaped(test)))].join('|');
  const vitest = join(folder, 'node_modules/vitest/vitest.mjs');
  const argv = ['run', '--project', project, '--reporter=json', `--outputFile=${report}`, '-t', names, ...files];
  const env = { ...process.env, CI: 'true' }; // snapshots are compared, never written
  const { stdout, stderr } = spawnSync(join(folder, 'tools/node'), [vitest, ...argv], {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  if (!existsSync(report)) return { outcomes: [], output: stdout + stderr };
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as JsonReport;
  rmSync(report);
  const outcomes = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === 'passed' || status === 'failed')
      .map(({ fullName, status, failureMessages = [] }) => ({
        project,
        file: relative(folder, name),
        name: fullName,
        passed: status === 'passed',
        error: failureMessages[0] ?? '',
      })),
  );
  return { outcomes, output: [...testResults.map(({ message }) => message), stderr].join('\n').trim() };
};

export const runTests = (folder: string, catchers: readonly Catcher[]): Run => {
  const projects = [...new Set(catchers.map(({ project }) => project))];
  const runs = projects.map((project) =>
    runProject(
      folder,
      project,
      catchers.filter((catcher) => catcher.project === project),
    ),
  );
  return { outcomes: runs.flatMap(({ outcomes }) => outcomes), output: runs.map(({ output }) => output).join('\n') };
};
