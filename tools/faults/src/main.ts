import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Fault, parsePatch } from './patch-file.ts';
import { runTests } from './test-run.ts';
import { copyTree, type TreeCopy } from './tree-copy.ts';
import { badCatcher, missedBy } from './verdict.ts';

/** Puts every known fault back, one after the other, and expects the tests that it names to notice. See README.md. */

const root = resolve(import.meta.dirname, '../../..');
const patchOf = ({ name }: Fault): string => join(root, 'tools/faults', `${name}.patch`);
const say = (text: string): void => void process.stdout.write(`${text}\n`);

const readFaults = (wanted: readonly string[]): Fault[] => {
  const faults = globSync('tools/faults/*.patch', { cwd: root })
    .sort()
    .map((path) => parsePatch(path, readFileSync(join(root, path), 'utf8')));
  const isWanted = ({ id, name }: Fault): boolean =>
    wanted.length === 0 || wanted.includes(id) || wanted.includes(name);
  const unknown = wanted.filter((text) => !faults.some(({ id, name }) => text === id || text === name));
  if (unknown.length > 0)
    throw new Error(`no fault is called ${unknown.join(', ')}: there are ${faults.map(({ name }) => name).join(', ')}`);
  return faults.filter(isWanted);
};

/** Why a fault was not caught; none: every test that it names noticed it. */
const tryFault = (copy: TreeCopy, fault: Fault): string[] => {
  const touchesPrograms = fault.changed.some((path) => path.startsWith('bpf/'));
  try {
    copy.apply(patchOf(fault));
  } catch (error) {
    return [`the patch does not apply any more: ${(error as Error).message}`];
  }
  try {
    if (touchesPrograms) copy.buildPrograms();
    const run = runTests(copy.folder, fault.catchers);
    return fault.catchers.flatMap((catcher) => missedBy(catcher, run) ?? []);
  } catch (error) {
    return [`it cannot be built: ${(error as Error).message}`];
  } finally {
    copy.revert(patchOf(fault));
    if (touchesPrograms) copy.buildPrograms();
  }
};

const secondsSince = (startedMs: number): string => `${((performance.now() - startedMs) / 1000).toFixed(1)} s`;

const main = (wanted: readonly string[]): boolean => {
  const faults = readFaults(wanted);
  using copy = copyTree(root);
  copy.buildPrograms();
  const startedMs = performance.now();
  const catchers = faults.flatMap((fault) => fault.catchers);
  const good = runTests(copy.folder, catchers);
  const bad = [...new Set(catchers.flatMap((catcher) => badCatcher(catcher, good) ?? []))];
  for (const problem of bad) say(`FAILED  ${problem}`);
  if (bad.length > 0) return false;
  say(`without any fault ${good.outcomes.length} tests pass in ${secondsSince(startedMs)}`);
  let failed = 0;
  for (const fault of faults) {
    const beganMs = performance.now();
    const problems = tryFault(copy, fault);
    const tests = fault.catchers.map(({ project, test }) => `${project} "${test}"`).join(' and ');
    if (problems.length === 0) say(`${fault.name} caught by ${tests} in ${secondsSince(beganMs)}`);
    else say(`FAILED  ${fault.name} (${fault.says})${problems.map((problem) => `\n        ${problem}`).join('')}`);
    failed += problems.length === 0 ? 0 : 1;
  }
  say(`${faults.length - failed} passed, ${failed} failed`);
  return failed === 0;
};

try {
  process.exitCode = main(process.argv.slice(2)) ? 0 : 1;
} catch (error) {
  process.stderr.write(`faults: ${(error as Error).message}\n`);
  process.exitCode = 2;
}
