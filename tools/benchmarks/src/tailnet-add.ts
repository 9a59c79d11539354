import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { applyManifests, kubectl } from '@unbounded/rig/control-plane';
import { tryOnNode } from '@unbounded/rig/node';
import { killAgent, timeUntil } from '@unbounded/rig/scenario';
import { measureAdd, readLab } from './cni-add.ts';
import { row, type Round } from './rounds.ts';

/** How long a node of the lab takes to attach a pod that does not join the tailnet, next to the same with the agent's section off, in turns. */

const NAMESPACE = 'bench';
const PODS = 65;
const TURNS = Number(process.env['ROUNDS'] ?? 5);
const READY_MS = 30_000;
/** After the agent is ready: what it still does at its start. */
const SETTLED_MS = 3000;

const { layout, node } = readLab();
const json = (objects: readonly object[]): string => JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });

const podObjects = Array.from({ length: PODS }, (_, index) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: `bench-${index}`, namespace: NAMESPACE },
  // Nobody runs them: their objects are what the agent asks for.
  spec: { schedulerName: 'nobody', automountServiceAccountToken: false, containers: [{ name: 'none', image: 'none' }] },
}));

/** With the section on or off. */
const measureWith = async (isOn: boolean, file: string): Promise<number> => {
  await killAgent(layout, node, 'node-dataplane', { UNBOUNDED_TAILNET: String(isOn) });
  const isReady = (): boolean =>
    tryOnNode(node, 'curl', '-sf', '--max-time', '2', 'http://127.0.0.1:9998/readyz') !== undefined;
  await timeUntil('the agent is ready', isReady, READY_MS);
  await delay(SETTLED_MS);
  return measureAdd(node, file);
};

const main = async (file: string): Promise<void> => {
  await applyManifests(layout, json([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }]));
  await applyManifests(layout, json(podObjects));
  const { items } = JSON.parse(await kubectl(layout, ['get', 'pods', '-n', NAMESPACE, '-o', 'json'])) as {
    items: { metadata: { name: string; uid: string } }[];
  };
  writeFileSync(
    file,
    JSON.stringify(items.map(({ metadata: { name, uid } }) => ({ name, uid, namespace: NAMESPACE }))),
  );
  const rounds: Round[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    // What comes second in one turn comes first in the next.
    const isOnFirst = turn % 2 === 0;
    const first = await measureWith(isOnFirst, file);
    const second = await measureWith(!isOnFirst, file);
    rounds.push(isOnFirst ? { ours: first, theirs: second } : { ours: second, theirs: first });
  }
  console.log(`CNI ADD on ${node} of a pod that does not join, with the tailnet section on, next to off (ms)\n`);
  console.log('| | on | off | ratio | least - greatest |\n|---|---|---|---|---|');
  console.log(row(`median of ${PODS - 1} pods`, rounds));
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
