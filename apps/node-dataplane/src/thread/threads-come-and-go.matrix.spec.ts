import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { are, makeNodes, planOf, type TestNode, type TestNodes } from '../connectivity/health/nodes.scenario.ts';

/**
 * The agent's threads start and end for half an hour beside a busy process per processor: V8 aborts the process of a thread for which it
 * loses count of compiled code (libs/config/src/node-command.ts). An abort ends this spec's process, and with it the run fails.
 */

const MINUTES = Number(process.env['UNBOUNDED_THREAD_MINUTES'] ?? 30);
const DURATION_MS = MINUTES * 60_000;

let world: TestNodes;
let busy: ReturnType<typeof spawn>[];
beforeEach(() => {
  world = makeNodes('a', 'b');
  busy = Array.from({ length: availableParallelism() }, () =>
    spawn('setpriv', ['--pdeathsig', 'KILL', 'sh', '-c', 'while :; do :; done'], { stdio: 'ignore' }),
  );
});
afterEach(async () => {
  for (const child of busy) child.kill('SIGKILL');
  await world[Symbol.asyncDispose]();
});

test(
  `threads of the agent start, probe and end under load for ${MINUTES} minutes`,
  { timeout: DURATION_MS + 60_000 },
  async () => {
    const [a, b] = world.nodes as [TestNode, TestNode];
    await b.start().apply(planOf(b, [a]));
    const started = performance.now();
    let starts = 0;
    while (performance.now() - started < DURATION_MS) {
      await a.start().apply(planOf(a, [b]));
      if (++starts % 10 === 0) await a.until(are('Healthy')); // it works, and its code is compiled
      await a.health.stop();
    }
    console.log(`${starts} threads in ${MINUTES} minutes`);
    expect(starts).toBeGreaterThan(MINUTES * 60);
  },
);
