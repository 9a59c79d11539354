import { Worker } from 'node:worker_threads';
import type { FuzzTarget } from '@unbounded/testing';

/** What a search is to do. */
export interface SearchRequest {
  /** The `*.fuzz.ts`. */
  readonly file: string;
  readonly seed: number;
  readonly corpus: readonly Uint8Array[];
  /** It ends with the first of the two. */
  readonly seconds: number;
  readonly runs: number;
  readonly guided: boolean;
  /** Longer than anything takes that ends, on a machine with other work. */
  readonly hangMs: number;
  /** Two i32, runs so far and the length of the input that runs; the input. */
  readonly shared: SharedArrayBuffer;
}

export interface Outcome {
  readonly runs: number;
  readonly features: number;
  readonly corpus: readonly Uint8Array[];
  readonly finding?: { readonly input: Uint8Array; readonly error: string };
}
export type SearchReport = Outcome;

const MOST_HEAP_MIB = 512;
const LARGEST_INPUT = 1 << 20;
/** Code out of a cache was compiled without counters for its blocks: a search by it is nearly blind. */
const WITHOUT_COMPILE_CACHE = { NODE_COMPILE_CACHE: undefined, NODE_DISABLE_COMPILE_CACHE: '1' };

type Defaults = Pick<SearchRequest, 'runs' | 'guided' | 'hangMs'>;
const defaults: Defaults = { runs: Number.MAX_SAFE_INTEGER, guided: true, hangMs: 30_000 };

/** Runs a search in a thread; a hang, an exhausted heap and an uncaught error are findings as well. */
export const runTypeScript = (
  request: Omit<SearchRequest, keyof Defaults | 'shared'> & Partial<Defaults>,
): Promise<Outcome> => {
  const shared = new SharedArrayBuffer(8 + LARGEST_INPUT);
  const state = new Int32Array(shared, 0, 2);
  const workerData: SearchRequest = { ...defaults, ...request, shared };
  const worker = new Worker(new URL('search.worker.ts', import.meta.url), {
    workerData,
    env: { ...process.env, ...WITHOUT_COMPILE_CACHE },
    resourceLimits: { maxOldGenerationSizeMb: MOST_HEAP_MIB },
  });
  const broken = (error: string): Outcome => ({
    runs: Atomics.load(state, 0),
    features: 0,
    corpus: [],
    finding: { input: new Uint8Array(shared, 8, Atomics.load(state, 1)).slice(), error },
  });
  return new Promise((resolve) => {
    let [seen, since] = [0, Date.now()];
    const watch = setInterval(() => {
      const runs = Atomics.load(state, 0);
      if (runs !== seen) [seen, since] = [runs, Date.now()];
      else if (runs > 0 && Date.now() - since > workerData.hangMs)
        finish(broken(`did not return within ${workerData.hangMs} ms`));
    }, 500);
    const finish = (outcome: Outcome): void => {
      clearInterval(watch);
      void worker.terminate();
      resolve(outcome);
    };
    worker.once('message', finish);
    worker.once('error', (error) => finish(broken(String(error instanceof Error ? (error.stack ?? error) : error))));
  });
};

/** Runs one input in this thread. @throws what the target throws */
export const reproduce = async (file: string, input: Uint8Array): Promise<void> => {
  const { target } = (await import(file)) as { target: FuzzTarget };
  target.run(input);
};
