import { failedOf, type LayerResult, slowest, testsOf } from './results.ts';

/** What `tools/test` prints at its end. */

/** A layer that takes half as long again as its budget fails. */
const TOLERANCE = 1.5;
const SLOWEST_SHOWN = 20;

export interface Machine {
  readonly processors: number;
  /** machine-speed.ts */
  readonly slowness: number;
}

export const isOverBudget = ({ wallSeconds, budgetSeconds }: LayerResult, { slowness }: Machine): boolean =>
  budgetSeconds !== undefined && wallSeconds > budgetSeconds * slowness * TOLERANCE;

const seconds = (value: number): string => value.toFixed(value < 10 ? 1 : 0);

const row = (result: LayerResult, machine: Machine): string[] => {
  const { layer, wallSeconds, processorSeconds, budgetSeconds, passed, isCached = false } = result;
  const busy = Math.round((100 * processorSeconds) / (wallSeconds * machine.processors));
  const budget = budgetSeconds === undefined ? '' : seconds(budgetSeconds * machine.slowness);
  const failures = failedOf(result);
  const passedAs = isCached ? 'passed before, unchanged' : 'passed';
  const verdict = passed ? (isOverBudget(result, machine) ? 'OVER BUDGET' : passedAs) : `FAILED ${failures || ''}`;
  return [layer, seconds(wallSeconds), budget, `${busy} %`, String(testsOf(result) || ''), verdict.trim()];
};

const HEAD = ['layer', 'wall s', 'budget s', 'processors', 'tests', ''];

const align = (rows: readonly (readonly string[])[]): string => {
  const widths = HEAD.map((_, column) => Math.max(...rows.map((cells) => cells[column]!.length)));
  const isText = (column: number): boolean => column === 0 || column === HEAD.length - 1;
  return rows
    .map((cells) =>
      cells
        .map((cell, column) => (isText(column) ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
};

/** The slowest spec files, one a line. */
export const slowestLines = (results: readonly LayerResult[], count = SLOWEST_SHOWN): string[] =>
  slowest(
    results.flatMap(({ specs }) => specs),
    count,
  ).map(({ seconds: took, file, tests }) => `${seconds(took).padStart(6)} s  ${file} (${tests} tests)`);

/** The names of what failed, and why a layer failed that has no failed test. */
export const failureLines = (results: readonly LayerResult[], machine: Machine): string[] =>
  results.flatMap((result) => {
    const tests = result.specs.flatMap(({ file, failed }) => failed.map((name) => `FAILED ${file}: ${name}`));
    if (isOverBudget(result, machine)) {
      const limit = seconds((result.budgetSeconds ?? 0) * machine.slowness * TOLERANCE);
      const slow = slowestLines([result], 5).map((line) => `  ${line}`);
      tests.push(
        `OVER BUDGET ${result.layer}: ${seconds(result.wallSeconds)} s, at most ${limit} s; slowest:`,
        ...slow,
      );
    }
    return result.passed || tests.length > 0 ? tests : [`FAILED ${result.layer}`];
  });

export const table = (results: readonly LayerResult[], machine: Machine): string => {
  const wallSeconds = results.reduce((sum, result) => sum + result.wallSeconds, 0);
  const processorSeconds = results.reduce((sum, result) => sum + result.processorSeconds, 0);
  const all: LayerResult = {
    ...{ layer: 'all', wallSeconds, processorSeconds, specs: results.flatMap(({ specs }) => specs) },
    passed: results.every(({ passed }) => passed),
  };
  return align([HEAD, ...[...results, all].map((result) => row(result, machine))]);
};
