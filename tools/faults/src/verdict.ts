import type { Catcher } from './patch-file.ts';
import type { Run, TestOutcome } from './test-run.ts';

/** What a run of named tests says: they are good without the fault, and notice it. */

/**
 * Of expectations (of promises too), of properties, of snapshots and of waits for what is to happen (`until`). An error of any other
 * kind may be the patch's own mistake.
 */
const ASSERTION =
  /^(AssertionError|Error: (Property failed|Snapshot |promise (rejected|resolved) |not within \d+ ms: ))/;
const MISTAKE = /\b(SyntaxError|ReferenceError|TypeError|RangeError)\b/;

const titled = ({ project, file, test }: Catcher): string => `${project}:${file} -t "${test}"`;

const outcomesOf = ({ project, file, test }: Catcher, { outcomes }: Run): TestOutcome[] =>
  outcomes.filter((outcome) => outcome.project === project && outcome.file === file && outcome.name.includes(test));

const firstLine = (text: string): string => text.split('\n', 1)[0]!;

const didNotRun = (catcher: Catcher, { output }: Run): string =>
  `${titled(catcher)} did not run${output === '' ? ': no test has this name' : `: ${output.slice(0, 2000)}`}`;

/** Why a test is none that can catch a fault: it does not pass in the tree as it is. Undefined: it is good. */
export const badCatcher = (catcher: Catcher, run: Run): string | undefined => {
  const own = outcomesOf(catcher, run);
  if (own.length === 0) return didNotRun(catcher, run);
  const failed = own.find(({ passed }) => !passed);
  return failed && `${titled(catcher)} fails without any fault: ${firstLine(failed.error)}`;
};

/** Why a fault got by a test that should have caught it. Undefined: it was caught. */
export const missedBy = (catcher: Catcher, run: Run): string | undefined => {
  const own = outcomesOf(catcher, run);
  if (own.length === 0) return didNotRun(catcher, run);
  const failed = own.filter(({ passed }) => !passed);
  if (failed.length === 0) return `${titled(catcher)} passes with the fault in place`;
  const isAssertion = ({ error }: TestOutcome): boolean => ASSERTION.test(error) && !MISTAKE.test(error);
  if (failed.some(isAssertion)) return undefined;
  return `${titled(catcher)} fails, but not by an expectation: ${firstLine(failed[0]!.error)}`;
};
