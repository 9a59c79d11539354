import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { affectedRoots } from './affected.ts';
import { parseRequest } from './command-line.ts';
import { runFlaky } from './flaky.ts';
import { CHECK_BUDGET_SECONDS, type Layer, LAYERS, layerNamed, specsOf } from './layers.ts';
import { PROPERTY_RUNS, propertySpecs } from './property-runs.ts';
import { failureLines, isOverBudget, slowestLines, table } from './report.ts';
import { failedOf, type LayerResult, passedOf } from './results.ts';
import { NX, reportFolder, root, runCommand, runLayer, timed } from './run-layer.ts';
import { inSandbox } from './sandbox.ts';
import { changedSince, projectGraph } from './workspace.ts';

/** Behind `tools/test`, which has made sure of Node and npm packages. Exit status: 0 passed, 1 failed, 2 wrong words. */

const say = (text: string): void => console.log(`\n== ${text}`);

const prepare = (needs: Layer['needs']): Promise<boolean> =>
  [...new Set(needs)].reduce(
    async (before, need) => (await before) && (await runCommand(['tools/setup', need])),
    Promise.resolve(true),
  );

/** A part of a tier that is no vitest project. */
const runStep = async (layer: string, command: readonly string[], budgetSeconds?: number): Promise<LayerResult> => {
  say(layer);
  return { layer, ...(await timed(() => runCommand(command))), specs: [], budgetSeconds };
};

/** Targets of the workspace (package.json), each cached by Nx. */
const CHECKS = ['format', 'types', 'lint', 'layers', 'unused', 'generate'];
const check = async (): Promise<LayerResult> => {
  const options = ['--projects=unbounded', '--parallel=2', '--outputStyle=static'];
  const result = await runStep('check', [...NX, 'run-many', '-t', ...CHECKS, ...options], CHECK_BUDGET_SECONDS);
  if (!result.passed) console.log('\ntools/format mends what "format" finds, tools/generate what "generate" does');
  return result;
};
const faults = (args: readonly string[]): Promise<LayerResult> =>
  runStep('faults', inSandbox(['tools/node', 'tools/faults/src/main.ts', ...args], { ownNetwork: true }));

const fuzzEnvironment = (layer: string, args: readonly string[]): [readonly string[], NodeJS.ProcessEnv] =>
  layer === 'fuzz' && /^\d+$/.test(args[0] ?? '') ? [args.slice(1), { FUZZ_SECONDS: args[0] }] : [args, {}];

/** One after another. @param argsOf what follows for vitest */
const runLayers = async (
  layers: readonly Layer[],
  argsOf: (layer: Layer) => readonly string[] = () => [],
): Promise<LayerResult[]> => {
  const results: LayerResult[] = [];
  for (const layer of layers) {
    say(layer.name);
    results.push(await runLayer(layer, argsOf(layer)));
  }
  return results;
};

const runOne = async (name: string, args: readonly string[]): Promise<LayerResult> => {
  if (name === 'check') return check();
  if (name === 'faults') return (await prepare(['test'])) ? faults(args) : Promise.reject(new Error('set-up failed'));
  const layer = layerNamed(name);
  if (!(await prepare(layer.needs))) throw new Error('set-up failed');
  say(name);
  return runLayer(layer, ...fuzzEnvironment(name, args));
};

/** check, and of each layer of CI the specs that a change can concern. */
const runAffected = async (base?: string): Promise<LayerResult[]> => {
  const roots = affectedRoots(projectGraph(), changedSince(base));
  say(roots.length === 0 ? 'nothing has changed' : `a change can concern ${roots.join(', ')}`);
  if (roots.length === 0) return [];
  const concerned = (layer: Layer): string[] =>
    specsOf(root, layer).filter((file) => roots.some((folder) => file.startsWith(`${folder}/`)));
  const layers = LAYERS.filter((layer) => layer.tier === 'ci' && concerned(layer).length > 0);
  if (!(await prepare(layers.flatMap(({ needs }) => needs)))) throw new Error('set-up failed');
  return [await check(), ...(await runLayers(layers, concerned))];
};

const runTier = async (full: boolean): Promise<LayerResult[]> => {
  const layers = LAYERS.filter(({ tier }) => full || tier === 'ci');
  const prepared = await timed(() => prepare(layers.flatMap(({ needs }) => needs)));
  const setUp = { layer: 'set-up', ...prepared, specs: [] }; // without a budget: on a new machine it builds for a quarter of an hour
  if (!setUp.passed) return [setUp];
  const results = [setUp, await check(), ...(await runLayers(layers.filter(({ tier }) => tier !== 'matrix')))];
  if (!full) return results;
  return [...results, await faults([]), ...(await runLayers(layers.filter(({ tier }) => tier === 'matrix')))];
};

/** @param args files of specs, or arguments for vitest; none: all specs that have properties */
const runProperties = async (times: number, args: readonly string[]): Promise<LayerResult> => {
  const layer = layerNamed('unit');
  const files = args.length > 0 ? args : propertySpecs(root, layer);
  say(`properties, with ${times} times as many cases`);
  return runLayer({ ...layer, cachedBy: undefined }, files, { [PROPERTY_RUNS]: String(times) });
};

/** Prints the tables, keeps them as JSON, and says whether all is well. */
const report = (results: readonly LayerResult[]): boolean => {
  const processors = availableParallelism();
  mkdirSync(reportFolder, { recursive: true });
  writeFileSync(join(reportFolder, 'report.json'), JSON.stringify({ processors, results }, null, 2));
  say('slowest specs');
  console.log(slowestLines(results).join('\n'));
  const slowest = Math.max(1, ...results.map(({ slowness }) => slowness));
  say(`layers (this machine took up to ${slowest.toFixed(2)} times as long as the one that the budgets are for)`);
  console.log(table(results, processors));
  const failures = failureLines(results);
  if (failures.length > 0) console.log(`\n${failures.join('\n')}`);
  const count = (of: (result: LayerResult) => number): number => results.reduce((sum, result) => sum + of(result), 0);
  console.log(`\n${count(passedOf)} passed, ${count(failedOf)} failed`);
  return results.every((result) => result.passed && !isOverBudget(result));
};

const main = async (argv: readonly string[]): Promise<boolean> => {
  const request = parseRequest(argv);
  if (request.kind === 'flaky') {
    const layer = layerNamed(request.layer);
    const [args, env] = fuzzEnvironment(layer.name, request.args);
    return (await prepare(layer.needs)) && (await runFlaky({ ...request, args }, layer, env));
  }
  if (request.kind === 'properties') return (await runProperties(request.times, request.args)).passed;
  if (request.kind === 'layer') return (await runOne(request.layer, request.args)).passed;
  const tier = () => (request.kind === 'affected' ? runAffected(request.base) : runTier(request.full));
  return report(await tier());
};

try {
  process.exitCode = (await main(process.argv.slice(2))) ? 0 : 1;
} catch (error) {
  process.stderr.write(`tools/test: ${(error as Error).message}\n`);
  process.exitCode = 2;
}
