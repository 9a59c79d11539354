import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { AGENT_V8_OPTIONS } from './libs/config/src/node-command.ts';
import { POOL_VARIABLE } from './libs/testing/src/pool-variable.ts';
import { globsOf, LAYERS } from './tools/suite/src/layers.ts';
import LongestFirst, { RANDOM_ORDER } from './tools/suite/src/longest-first.ts';
import { multiplyRuns, PROPERTY_RUNS } from './tools/suite/src/property-runs.ts';

/** One project for each row of tools/suite/src/layers.ts: the name of a spec file says where it runs. */

const timesCases = Number(process.env[PROPERTY_RUNS] ?? 1);
/** In a virtual machine (tools/vm/run), which may be emulated. */
const timesSlower = process.env['IN_VM'] ? 10 : 1;

/** The path of the pool's socket, of this run and this layer. */
const apiServers = (layer: string) => ({
  globalSetup: ['libs/testing/src/api-server-pool.setup.ts'],
  env: { [POOL_VARIABLE]: join(tmpdir(), `unbounded-api-servers-${process.pid}-${layer}`) },
});

const projects = LAYERS.map((layer, order) => {
  const { include, exclude } = globsOf(layer);
  const isUnit = layer.name === 'unit';
  return {
    plugins: timesCases > 1 ? [multiplyRuns(timesCases)] : [],
    test: {
      name: layer.name,
      include,
      exclude: ['**/node_modules/**', '**/dist/**', ...exclude],
      pool: 'forks' as const,
      // Threads of V8 that collect garbage have no processor of their own here: without them unit specs take a tenth less.
      execArgv: [...AGENT_V8_OPTIONS],
      maxWorkers: layer.workers,
      ...(layer.borrowsApiServers === true ? apiServers(layer.name) : {}),
      // Pure code is loaded once for each worker, not for each spec: that took half of the processor time.
      isolate: !isUnit,
      // Layers run one after another, also when vitest is started by hand for all.
      sequence: { groupOrder: order },
      // Longer than `until` waits, so that a failure says what did not happen.
      testTimeout: (isUnit ? 60_000 : 120_000) * timesCases * timesSlower,
      hookTimeout: (isUnit ? 60_000 : 120_000) * timesSlower,
      expect: { poll: { timeout: 45_000 } }, // as long as `until`
    },
  };
});

const sequence = process.env[RANDOM_ORDER] ? { shuffle: { files: true } } : { sequencer: LongestFirst };

export default defineConfig({ test: { projects, sequence } });
