import { spawn } from 'node:child_process';
import { randomInt, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, homedir } from 'node:os';
import { join } from 'node:path';
import type { Layer } from './layers.ts';
import { measureSlowness } from './machine-speed.ts';
import { busySeconds } from './processor-time.ts';
import type { LayerResult, SpecResult } from './results.ts';
import { inSandbox } from './sandbox.ts';

export const root = join(import.meta.dirname, '../../..');
/** Of the last run: a table in JSON, and the results of each layer. */
export const reportFolder = join(root, 'build/test');

const cache = process.env['UNBOUNDED_CACHE'] ?? join(homedir(), '.cache/unbounded');

const MS_PER_SECOND = 1000;

/** Runs a command with our output; true when it ends with status 0. */
export const runCommand = async (command: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<boolean> => {
  const [program, ...args] = command;
  const child = spawn(program!, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } });
  const [status] = (await once(child, 'exit')) as [number | null];
  return status === 0;
};

export type Timed = Pick<LayerResult, 'passed' | 'wallSeconds' | 'processorSeconds' | 'slowness'>;

/** What the end of a layer shows is good for the begin of the next: it takes a second. */
const FRESH_MS = 1000;
let measured = { atMs: Number.NEGATIVE_INFINITY, slowness: 1 };
const slownessNow = (): number => {
  if (performance.now() - measured.atMs > FRESH_MS) {
    const slowness = measureSlowness(availableParallelism());
    measured = { atMs: performance.now(), slowness };
  }
  return measured.slowness;
};

export const timed = async (work: () => Promise<boolean>): Promise<Timed> => {
  const slowBefore = slownessNow();
  const [startedMs, usedBefore] = [performance.now(), busySeconds()];
  const passed = await work();
  const wallSeconds = (performance.now() - startedMs) / MS_PER_SECOND;
  const slowness = Math.max(slowBefore, slownessNow());
  return { passed, wallSeconds, processorSeconds: busySeconds() - usedBefore, slowness };
};

/** What spec-reporter.ts writes; `run` is ours unless Nx took the results out of its cache. */
interface SpecResults {
  readonly run: string;
  readonly specs: readonly SpecResult[];
}

const readResults = (file: string, run: string): SpecResults =>
  existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as SpecResults) : { run, specs: [] };

export const NX = ['tools/node', 'node_modules/.bin/nx'] as const;
/** A lab's spec may take half an hour: each of its tests is reported when it ends, also if the run is stopped before the last one. */
const reportersOf = ({ hasLabs = false }: Layer): string[] => [
  `--reporter=${hasLabs ? 'verbose' : 'default'}`,
  '--reporter=./tools/suite/src/spec-reporter.ts',
];

/** Of a machine's runs that have labs one is at work at a time; the others say that they wait. */
const IN_TURN = `flock -n "$0" true || echo "waiting for another run that has a lab on this machine" >&2; exec flock "$0" "$@"`;

/** Set within a run that has the lock of the lab: matrix starts the other layers. */
const HAS_LOCK = 'UNBOUNDED_TEST_LAB_LOCKED';

/** Nx runs whole layers only: its cache knows nothing of arguments. */
const isByNx = ({ cachedBy }: Layer, args: readonly string[]): boolean => cachedBy !== undefined && args.length === 0;

const commandOf = (layer: Layer, args: readonly string[]): string[] => {
  const { name, hasLabs = false } = layer;
  if (isByNx(layer, args)) return [...NX, 'run', `unbounded:${name}`];
  const vitest = [
    'tools/node',
    'node_modules/vitest/vitest.mjs',
    'run',
    '--project',
    name,
    ...reportersOf(layer),
    ...args,
  ];
  return hasLabs && !process.env[HAS_LOCK] ? ['sh', '-c', IN_TURN, join(cache, 'test-lab.lock'), ...vitest] : vitest;
};

/** Pids are below it. */
const MOST_PIDS = 2 ** 22;

/**
 * By which Nx finds tasks that start themselves: it notes the running ones by the pid of the first Nx, and a run that is killed leaves its
 * note. In PID namespaces that number is the same at each run, and the next run would be taken for a part of the killed one.
 */
export const invocationRoot = (): string => String(randomInt(MOST_PIDS, 2 ** 31));

/** Where Nx keeps what all checkouts of this machine share; else nx.json says it. */
const MACHINE_CACHE = {
  NX_CACHE_DIRECTORY: join(cache, 'nx/cache'),
  NX_WORKSPACE_DATA_DIRECTORY: join(cache, 'nx/data'),
};

const ENVIRONMENT = {
  /** Where a layer's lab keeps its state: not where a lab does that a person brought up. */
  UNBOUNDED_LAB: 'test-lab',
  /** Specs start our programs some thousand times: with compiled code on disk a start takes half of the processor time. */
  NODE_COMPILE_CACHE: join(root, 'build/compile-cache'),
};

/** @param args for vitest: files, `-t NAME`, … */
export const runLayer = async (
  layer: Layer,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): Promise<LayerResult> => {
  const file = join(reportFolder, `${layer.name}.json`);
  mkdirSync(reportFolder, { recursive: true });
  rmSync(file, { force: true });
  const ourRun = randomUUID();
  const result = await timed(() =>
    runCommand(inSandbox(commandOf(layer, args), { ownNetwork: !layer.onHostNetwork }), {
      ...ENVIRONMENT,
      ...(layer.cachedBy === 'machine' && MACHINE_CACHE),
      ...(isByNx(layer, args) && { NX_INVOCATION_ROOT_PID: invocationRoot() }),
      ...(layer.hasLabs && { [HAS_LOCK]: 'true' }),
      ...env,
      UNBOUNDED_SPEC_RESULTS: file,
      UNBOUNDED_SPEC_RUN: ourRun,
    }),
  );
  const { run, specs } = readResults(file, ourRun);
  return { layer: layer.name, budgetSeconds: layer.budgetSeconds, ...result, specs, isCached: run !== ourRun };
};
