/** What a run of a layer gave, as the reporter writes it and as build/test/report.json holds it. */

export interface SpecResult {
  /** From the top of the tree. */
  readonly file: string;
  readonly project: string;
  /** From the import of the file to the end of its last hook. */
  readonly seconds: number;
  readonly tests: number;
  /** Full names of the tests that failed; the file itself where it could not be loaded. */
  readonly failed: readonly string[];
  readonly skipped: number;
  /** The test that took longest, hooks not counted; a file that could not be loaded has none. */
  readonly slowestTest?: { readonly name: string; readonly seconds: number } | undefined;
}

export interface LayerResult {
  readonly layer: string;
  readonly passed: boolean;
  readonly wallSeconds: number;
  /** machine-speed.ts, at its begin or its end, whichever is slower. */
  readonly slowness: number;
  /** That the machine has used meanwhile. */
  readonly processorSeconds: number;
  readonly budgetSeconds?: number | undefined;
  readonly specs: readonly SpecResult[];
  /** It passed before, and nothing that it depends on has changed: these are the results of then. */
  readonly isCached?: boolean;
}

export const testsOf = ({ specs }: LayerResult): number => specs.reduce((sum, { tests }) => sum + tests, 0);
/** Skipped tests have not passed; of a file that could not be loaded no test is known, and the file itself has failed. */
export const passedOf = ({ specs }: LayerResult): number =>
  specs.reduce((sum, { tests, skipped, failed }) => sum + Math.max(0, tests - skipped - failed.length), 0);
export const failedOf = ({ specs }: LayerResult): number => specs.reduce((sum, { failed }) => sum + failed.length, 0);

export const slowest = (specs: readonly SpecResult[], count: number): SpecResult[] =>
  specs.toSorted((a, b) => b.seconds - a.seconds).slice(0, count);
