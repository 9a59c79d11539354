import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { agentReady } from '@unbounded/rig/agent-state';
import { applyManifests, kubectl } from '@unbounded/rig/control-plane';
import { killAgent, timeUntil } from '@unbounded/rig/scenario';
import { createBenchPods, listOf } from './bench-pods.ts';
import { type AddRound, type AddTimes, measureAdd, readLab, roundsByKind } from './cni-add.ts';
import { median, row } from './rounds.ts';

/** How long a node of the lab takes to attach a pod that does not join the tailnet, next to the same with the agent's section off, in turns. */

const NAMESPACE = 'bench';
/** Of both together the least is what counts: it is the same in quiet and in busy minutes of the machine. */
const TURNS = Number(process.env['ROUNDS'] ?? 9);
const READY_MS = 30_000;
/** After the agent is ready: what it still does at its start. */
const SETTLED_MS = 3000;

const { layout, node } = readLab();
/** With the section on or off. */
const measureWith = async (isOn: boolean, file: string): Promise<AddTimes> => {
  await killAgent(layout, node, 'node-dataplane', { UNBOUNDED_TAILNET: String(isOn) });
  await timeUntil('the agent is ready', () => agentReady(node), READY_MS);
  await delay(SETTLED_MS);
  return measureAdd(node, file);
};

const main = async (file: string): Promise<void> => {
  await applyManifests(layout, listOf([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }]));
  await createBenchPods(layout, NAMESPACE, file);
  const rounds: AddRound[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    // What comes second in one turn comes first in the next.
    const isOnFirst = turn % 2 === 0;
    const first = await measureWith(isOnFirst, file);
    const second = await measureWith(!isOnFirst, file);
    rounds.push(isOnFirst ? { ours: first, theirs: second } : { ours: second, theirs: first });
  }
  console.log(`CNI ADD on ${node} of a pod that does not join, with the tailnet section on, next to off (ms)\n`);
  console.log('| | on | off | ratio | least - greatest |\n|---|---|---|---|---|');
  const byKind = roundsByKind(rounds);
  for (const [name, ofKind] of byKind) console.log(row(name, ofKind));
  console.log('');
  for (const [name, ofKind] of byKind) {
    const longerMs = ofKind.map(({ ours, theirs }) => ours - theirs);
    console.log(
      `${name}: ${median(longerMs).toFixed(2)} ms longer (${longerMs.map((ms) => ms.toFixed(2)).join(', ')})`,
    );
  }
  const [on, off] = (['ours', 'theirs'] as const).map((key) => Math.min(...rounds.map((round) => round[key].least)));
  console.log(
    `least of all turns: ${on!.toFixed(2)} and ${off!.toFixed(2)}, ${(on! - off!).toFixed(2)} ms longer (at most 1)`,
  );
};

const folder = mkdtempSync(join(tmpdir(), 'tailnet-add-'));
try {
  if (!layout.options.tailnet) throw new Error('the lab has no tailnet: tools/lab down, then up --tailnet');
  await main(join(folder, 'pods.json'));
} finally {
  rmSync(folder, { recursive: true, force: true });
  if (layout.options.tailnet) await killAgent(layout, node, 'node-dataplane');
  await kubectl(layout, ['delete', 'namespace', NAMESPACE, '--wait=false', '--ignore-not-found']);
}
