import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { agentReady } from '@unbounded/rig/agent-state';
import { applyManifests, kubectl } from '@unbounded/rig/control-plane';
import { killAgent, timeUntil } from '@unbounded/rig/scenario';
import { createBenchPods, listOf } from './bench-pods.ts';
import { readWorkers, startAdds } from './cni-add.ts';
import { measurePairs, type Pair, pairRow } from './paired-adds.ts';

/** How much longer a node takes to attach a pod that does not join the tailnet with the agent's section on, next to another node with it off. */

const NAMESPACE = 'bench';
const TURNS = Number(process.env['ROUNDS'] ?? 6);
const PAIRS = Number(process.env['PODS'] ?? 100);
const READY_MS = 30_000;
/** After the agent is ready: what it still does at its start. */
const SETTLED_MS = 5000;

const { layout, workers } = readWorkers();

const restart = async (node: string, env: NodeJS.ProcessEnv = {}): Promise<void> => {
  await killAgent(layout, node, 'node-dataplane', env);
  await timeUntil(`the agent of ${node} is ready`, () => agentReady(node), READY_MS);
};

/** @param files of the pods of each node */
const measureWith = async (on: string, off: string, files: ReadonlyMap<string, string>): Promise<Pair[]> => {
  await restart(on, { UNBOUNDED_TAILNET: 'true' });
  await restart(off, { UNBOUNDED_TAILNET: 'false' });
  await delay(SETTLED_MS);
  const [ours, theirs] = [on, off].map((node) => startAdds(node, files.get(node)!));
  return measurePairs(ours!, theirs!, PAIRS);
};

const longerMs = ({ oursMs, theirsMs }: Pair): number => oursMs - theirsMs;

/** Each node has pods of its own. */
const splitPods = (folder: string): Map<string, string> => {
  const pods = JSON.parse(readFileSync(join(folder, 'pods.json'), 'utf8')) as object[];
  return new Map(
    workers.map((node, at) => {
      const file = join(folder, `${node}.json`);
      writeFileSync(file, JSON.stringify(pods.filter((_, index) => index % 2 === at)));
      return [node, file];
    }),
  );
};

const main = async (folder: string): Promise<void> => {
  await applyManifests(layout, listOf([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }]));
  await createBenchPods(layout, NAMESPACE, join(folder, 'pods.json'));
  const files = splitPods(folder);
  const [one, other] = workers;
  const pairs: Pair[] = [];
  console.log(`CNI ADD of a pod that does not join, on ${one} and ${other} in turn (ms; medians)\n`);
  console.log('| | on | off | longer (95 % confidence interval) |\n|---|---|---|---|');
  for (let turn = 0; turn < TURNS; turn++) {
    const [on, off] = turn % 2 === 0 ? [one, other] : [other, one];
    const ofTurn = await measureWith(on, off, files);
    console.log(pairRow(`on at ${on}`, ofTurn, longerMs));
    pairs.push(...ofTurn);
  }
  console.log(pairRow(`all ${pairs.length} pairs; the goal is 1 ms`, pairs, longerMs));
};

const folder = mkdtempSync(join(tmpdir(), 'tailnet-add-'));
try {
  if (!layout.options.tailnet) throw new Error('the lab has no tailnet: tools/lab down, then up --tailnet');
  await main(folder);
} finally {
  rmSync(folder, { recursive: true, force: true });
  if (layout.options.tailnet) for (const node of workers) await killAgent(layout, node, 'node-dataplane');
  await kubectl(layout, ['delete', 'namespace', NAMESPACE, '--wait=false', '--ignore-not-found']);
}
