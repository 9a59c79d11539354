import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { text } from 'node:stream/consumers';
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

const runProject = async (folder: string, project: string, catchers: readonly Catcher[]): Promise<Run> => {
  const report = join(folder, 'faults-report.json');
  const files = [...new Set(catchers.map(({ file }) => file))];
  const names = [...new Set(catchers.map(({ test }) => escaped(test)))].join('|');
  const vitest = join(folder, 'node_modules/vitest/vitest.mjs');
  const argv = ['run', '--project', project, '--reporter=json', `--outputFile=${report}`, '-t', names, ...files];
  const env = { ...process.env, CI: 'true' }; // snapshots are compared, never written
  const child = spawn(join(folder, 'tools/node'), [vitest, ...argv], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
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

/** Layer after layer: a layer is what this machine runs at a time. */
export const runTests = async (folder: string, catchers: readonly Catcher[]): Promise<Run> => {
  const runs: Run[] = [];
  for (const project of new Set(catchers.map((catcher) => catcher.project)))
    runs.push(
      await runProject(
        folder,
        project,
        catchers.filter((catcher) => catcher.project === project),
      ),
    );
  return { outcomes: runs.flatMap(({ outcomes }) => outcomes), output: runs.map(({ output }) => output).join('\n') };
};
