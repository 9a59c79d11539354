import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'vite';
import { type Layer, specsOf } from './layers.ts';

/**
 * `tools/test properties N`: specs of properties (fast-check) with N times their cases. What one of some thousand cases breaks fails in CI once in a
 * while, and looks like a flaky spec.
 */

/** How vitest.config.ts is told. */
export const PROPERTY_RUNS = 'UNBOUNDED_PROPERTY_RUNS';

/** Of fast-check, where a spec says none. */
const USUAL_RUNS = 100;

const IMPORT = /^import (\* as )?fc from 'fast-check';$/m;
const RUNS = /\bnumRuns: ([\d_]+)/g;
/** What a test may take, where it says it itself. */
const TIMEOUT = /^( *\}, )([\d_]+)(\);)$/gm;

const timesOf = (number: string, times: number): number => Number(number.replaceAll('_', '')) * times;

/** @param spec source; it keeps its lines */
export const withRuns = (spec: string, times: number): string =>
  IMPORT.test(spec)
    ? spec
        .replace(RUNS, (_, runs: string) => `numRuns: ${timesOf(runs, times)}`)
        .replace(IMPORT, (line) => `${line} fc.configureGlobal({ numRuns: ${USUAL_RUNS * times} });`)
        .replace(TIMEOUT, (_, before: string, ms: string, behind: string) => before + timesOf(ms, times) + behind)
    : spec;

export const multiplyRuns = (times: number): Plugin => ({
  name: 'property-runs',
  enforce: 'pre',
  transform: (code, id) => (id.endsWith('.spec.ts') ? { code: withRuns(code, times), map: null } : undefined),
});

/** The specs of a layer that have properties. */
export const propertySpecs = (root: string, layer: Layer): string[] =>
  specsOf(root, layer).filter((file) => IMPORT.test(readFileSync(join(root, file), 'utf8')));
