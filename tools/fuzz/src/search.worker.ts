import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { parentPort, workerData } from 'node:worker_threads';
import type { FuzzTarget } from '@unbounded/testing';
import { startCoverage } from './coverage.ts';
import { search } from './loop.ts';
import type { SearchReport, SearchRequest } from './run-typescript.ts';

/** A search in a thread of its own: its parent sees the input that it does not return from, or for which memory ends. */

const { file, seed, corpus, seconds, runs: mostRuns, guided, shared } = workerData as SearchRequest;
const port = parentPort!;
const MOST_EXTERNAL_BYTES = 512 << 20;

const coverage = startCoverage(
  (url) => /\/(apps|libs|tools\/fuzz\/src\/planted)\//.test(url) && !url.includes('/node_modules/'),
);
const { target } = (await import(pathToFileURL(file).href)) as { target: FuzzTarget };

const state = new Int32Array(shared, 0, 2); // runs, length of the input
const current = new Uint8Array(shared, 8);
const end = performance.now() + seconds * 1000;
const goesOn = (runs: number): boolean =>
  runs < mostRuns && (performance.now() < end || runs < target.seeds.length + corpus.length + 1);
const before = (input: Uint8Array): void => {
  current.set(input);
  Atomics.store(state, 1, input.length);
  const runs = Atomics.add(state, 0, 1);
  if (runs % 512 === 511 && process.memoryUsage().arrayBuffers > MOST_EXTERNAL_BYTES)
    throw new Error('more than 512 MiB of buffers');
};
const { finding, ...found } = search(target, { seed, corpus, ...(guided && { coverage }), goesOn, before });
const report: SearchReport = {
  ...found,
  ...(finding && { finding: { input: finding.input, error: inspect(finding.error) } }),
};
port.postMessage(report);
