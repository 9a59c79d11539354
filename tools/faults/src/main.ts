import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { type KnownFault, readFaults } from './known-faults.ts';
import { runTests } from './test-run.ts';
import { copyTree, type TreeCopy } from './tree-copy.ts';
import { badCatcher, missedBy } from './verdict.ts';

/** Puts every known fault back, each alone in a copy of the tree, and expects the tests that it names to notice. See README.md. */

const root = resolve(import.meta.dirname, '../../..');
const patchOf = ({ path }: KnownFault): string => join(root, path);
const say = (text: string): void => void process.stdout.write(`${text}\n`);

const chosen = (wanted: readonly string[]): KnownFault[] => {
  const faults = readFaults(root);
  const isWanted = ({ id, name }: KnownFault): boolean =>
    wanted.length === 0 || wanted.includes(id) || wanted.includes(name);
  const unknown = wanted.filter((text) => !faults.some(({ id, name }) => text === id || text === name));
  if (unknown.length > 0)
    throw new Error(`no fault is called ${unknown.join(', ')}: there are ${faults.map(({ name }) => name).join(', ')}`);
  return faults.filter(isWanted);
};

/** Why a fault was not caught; none: every test that it names noticed it. */
const tryFault = async (copy: TreeCopy, fault: KnownFault): Promise<string[]> => {
  const touchesPrograms = fault.changed.some((path) => path.startsWith('bpf/'));
  try {
    copy.apply(patchOf(fault));
  } catch (error) {
    return [`the patch does not apply any more: ${(error as Error).message}`];
  }
  try {
    if (touchesPrograms) copy.buildPrograms();
    const run = await runTests(copy.folder, fault.catchers);
    return fault.catchers.flatMap((catcher) => missedBy(catcher, run) ?? []);
  } catch (error) {
    return [`it cannot be built: ${(error as Error).message}`];
  } finally {
    copy.revert(patchOf(fault));
    if (touchesPrograms) copy.buildPrograms();
  }
};

const secondsSince = (startedMs: number): string => `${((performance.now() - startedMs) / 1000).toFixed(1)} s`;

/** Says how a fault went. @returns whether it was caught */
const judge = async (copy: TreeCopy, fault: KnownFault): Promise<boolean> => {
  const beganMs = performance.now();
  const problems = await tryFault(copy, fault);
  const tests = fault.catchers.map(({ project, test }) => `${project} "${test}"`).join(' and ');
  if (problems.length === 0) say(`${fault.name} caught by ${tests} in ${secondsSince(beganMs)}`);
  else say(`FAILED  ${fault.name} (${fault.says})${problems.map((problem) => `\n        ${problem}`).join('')}`);
  return problems.length === 0;
};

/** A copy for each processor: most faults are caught by one spec file, which keeps one busy. @returns how many were not caught */
const tryAll = async (first: TreeCopy, faults: readonly KnownFault[]): Promise<number> => {
  using copies = new DisposableStack();
  const waiting = faults.values();
  let missed = 0;
  const work = async (copy: TreeCopy): Promise<void> => {
    for (const fault of waiting) if (!(await judge(copy, fault))) missed++;
  };
  const others = Array.from({ length: Math.min(availableParallelism(), faults.length) - 1 }, () => {
    const copy = copies.use(copyTree(root));
    copy.buildPrograms();
    return copy;
  });
  await Promise.all([first, ...others].map(work));
  return missed;
};

const main = async (wanted: readonly string[]): Promise<boolean> => {
  const faults = chosen(wanted);
  using copy = copyTree(root);
  copy.buildPrograms();
  const startedMs = performance.now();
  const catchers = faults.flatMap((fault) => fault.catchers);
  const good = await runTests(copy.folder, catchers);
  const bad = [...new Set(catchers.flatMap((catcher) => badCatcher(catcher, good) ?? []))];
  for (const problem of bad) say(`FAILED  ${problem}`);
  if (bad.length > 0) return false;
  say(`without any fault ${good.outcomes.length} tests pass in ${secondsSince(startedMs)}`);
  const missed = await tryAll(copy, faults);
  say(`${faults.length - missed} passed, ${missed} failed`);
  return missed === 0;
};

try {
  process.exitCode = (await main(process.argv.slice(2))) ? 0 : 1;
} catch (error) {
  process.stderr.write(`faults: ${(error as Error).message}\n`);
  process.exitCode = 2;
}
