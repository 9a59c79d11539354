import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import type { Request } from './command-line.ts';
import { startInterruptions } from './interruptions.ts';
import type { LayerResult } from './results.ts';
import type { Layer } from './layers.ts';
import { RANDOM_ORDER } from './longest-first.ts';
import { runLayer } from './run-layer.ts';

/**
 * `tools/test flaky LAYER N`, `tools/test interrupted LAYER N`: a spec that fails beside other load, behind
 * another one, or once in many runs, fails here first.
 */

/** One for each processor, so that what is tested has half of the machine at best. */
const startBusyProcesses = (): { readonly pids: ReadonlySet<number>; readonly end: () => void } => {
  const children = Array.from({ length: availableParallelism() }, () =>
    spawn('setpriv', ['--pdeathsig', 'KILL', 'sh', '-c', 'while :; do :; done'], { stdio: 'ignore' }),
  );
  return {
    pids: new Set(children.map(({ pid }) => pid!)),
    end: () => children.forEach((child) => void child.kill('SIGKILL')),
  };
};

type FlakyRequest = Extract<Request, { kind: 'flaky' }>;

/** How often each test failed, most often first: "2 of 10  FILE: TEST". */
export const failureCounts = (runs: readonly LayerResult[]): string[] => {
  const counts = new Map<string, number>();
  for (const { layer, passed, specs } of runs) {
    const failed = specs.flatMap(({ file, failed: names }) => names.map((name) => `${file}: ${name}`));
    for (const name of failed.length > 0 || passed ? failed : [`${layer}: the runner failed`])
      counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => `${count} of ${runs.length}  ${name}`);
};

/** Runs a layer some times beside a busy process per processor; `interrupted`: while its own processes are stopped for moments. */
export const runFlaky = async (
  { interrupted, times, args }: Pick<FlakyRequest, 'interrupted' | 'times' | 'args'>,
  layer: Layer,
  env: NodeJS.ProcessEnv,
): Promise<boolean> => {
  const busy = startBusyProcesses();
  const endInterruptions = interrupted ? startInterruptions(busy.pids) : undefined;
  const runs: LayerResult[] = [];
  try {
    while (runs.length < times) {
      console.log(
        `\n== ${layer.name}: run ${runs.length + 1} of ${times}, ${interrupted ? 'interrupted, ' : ''}beside ${availableParallelism()} busy processes`,
      );
      runs.push(await runLayer({ ...layer, cachedBy: undefined }, args, { ...env, [RANDOM_ORDER]: 'true' }));
    }
  } finally {
    if (endInterruptions) console.log(`\n== processes were stopped ${await endInterruptions()} times`);
    busy.end();
  }
  const counts = failureCounts(runs);
  console.log(`\n== ${layer.name}: ${runs.length} runs, ${runs.filter(({ passed }) => !passed).length} failed`);
  for (const line of counts) console.log(line);
  return runs.every(({ passed }) => passed);
};
