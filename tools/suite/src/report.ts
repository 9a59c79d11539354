import { failedOf, type LayerResult, slowest, type SpecResult, testsOf } from './results.ts';

/** What `tools/test` prints at its end. */

/** A layer that takes half as long again as its budget fails. */
const TOLERANCE = 1.5;
const SLOWEST_SHOWN = 20;

/** What a layer may take on this machine, as slow as it was then. */
const budgetOf = ({ budgetSeconds = Number.POSITIVE_INFINITY, slowness }: LayerResult): number =>
  budgetSeconds * slowness;

export const isOverBudget = (result: LayerResult): boolean => result.wallSeconds > budgetOf(result) * TOLERANCE;

const seconds = (value: number): string => value.toFixed(value < 10 ? 1 : 0);

const row = (result: LayerResult, processors: number): string[] => {
  const { layer, wallSeconds, processorSeconds, budgetSeconds, passed, isCached = false } = result;
  const busy = Math.round((100 * processorSeconds) / Math.max(wallSeconds * processors, 1e-3));
  const budget = budgetSeconds === undefined ? '' : seconds(budgetOf(result));
  const failures = failedOf(result);
  const passedAs = isCached ? 'passed before, unchanged' : 'passed';
  const verdict = passed ? (isOverBudget(result) ? 'OVER BUDGET' : passedAs) : `FAILED ${failures || ''}`;
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

const specLine = ({ seconds: took, file, tests }: SpecResult): string =>
  `${seconds(took).padStart(6)} s  ${file} (${tests} tests)`;

/** A spec file and, below it, what it spent most of its time on: a wait that nobody meant looks like this. */
const specLines = (spec: SpecResult): string[] => {
  const { slowestTest } = spec;
  return [
    specLine(spec),
    ...(slowestTest ? [`${seconds(slowestTest.seconds).padStart(10)} s  ${slowestTest.name}`] : []),
  ];
};

/** The slowest spec files, one a line. */
export const slowestLines = (results: readonly LayerResult[], count = SLOWEST_SHOWN): string[] =>
  slowest(
    results.flatMap(({ specs }) => specs),
    count,
  ).map(specLine);

/** The names of what failed, and why a layer failed that has no failed test. */
export const failureLines = (results: readonly LayerResult[]): string[] =>
  results.flatMap((result) => {
    const tests = result.specs.flatMap(({ file, failed }) => failed.map((name) => `FAILED ${file}: ${name}`));
    if (isOverBudget(result)) {
      const limit = seconds(budgetOf(result) * TOLERANCE);
      const slow = slowest(result.specs, 5)
        .flatMap(specLines)
        .map((line) => `  ${line}`);
      tests.push(
        `OVER BUDGET ${result.layer}: ${seconds(result.wallSeconds)} s, at most ${limit} s; slowest:`,
        ...slow,
      );
    }
    return result.passed || tests.length > 0 ? tests : [`FAILED ${result.layer}`];
  });

export const table = (results: readonly LayerResult[], processors: number): string => {
  const wallSeconds = results.reduce((sum, result) => sum + result.wallSeconds, 0);
  const processorSeconds = results.reduce((sum, result) => sum + result.processorSeconds, 0);
  const all: LayerResult = {
    ...{ layer: 'all', wallSeconds, processorSeconds, slowness: 1, specs: results.flatMap(({ specs }) => specs) },
    passed: results.every(({ passed }) => passed),
  };
  return align([HEAD, ...[...results, all].map((result) => row(result, processors))]);
};
