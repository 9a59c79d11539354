import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { applyManifests, kubectl } from '@unbounded/rig/control-plane';
import { GROUP_VERSION } from '@unbounded/crds';
import { measureAdd, readLab } from './cni-add.ts';
import { row, type Round } from './rounds.ts';

/** How long a node of the lab takes to attach a pod with egress rules in its namespace, next to the same without any, in turns. */

const NAMESPACE = 'bench';
const PODS = 65;
const RULES = 200;
const TURNS = Number(process.env['ROUNDS'] ?? 5);
/** Until agents have heard of rules that came or went. */
const HEARD_MS = 3000;

const { layout, node } = readLab();
const json = (objects: readonly object[]): string => JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });

const podObjects = Array.from({ length: PODS }, (_, index) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: `bench-${index}`, namespace: NAMESPACE, labels: { app: 'bench' } },
  // Nobody runs them: their objects are what the agent asks for.
  spec: { schedulerName: 'nobody', automountServiceAccountToken: false, containers: [{ name: 'none', image: 'none' }] },
}));

/** Of documentation (RFC 5737): nobody owns it. */
const EGRESS_ADDRESS = '198.51.100.9';
const RULES_OF_AN_OBJECT = 25;

const ruleOf = (number: number, selected: string): object => ({
  egressip: EGRESS_ADDRESS,
  cidr: `192.0.2.${number}/32`,
  podSelector: { matchLabels: { app: number === 0 ? selected : 'others' } },
});

const ruleObjects = (selected: string): object[] =>
  Array.from({ length: RULES / RULES_OF_AN_OBJECT }, (_, object) => ({
    apiVersion: GROUP_VERSION,
    kind: 'StaticEgressIP',
    metadata: { name: `bench-${object}`, namespace: NAMESPACE },
    spec: {
      rules: Array.from({ length: RULES_OF_AN_OBJECT }, (__, index) =>
        ruleOf(object * RULES_OF_AN_OBJECT + index, selected),
      ),
    },
  }));

const withoutRules = (): Promise<string> => kubectl(layout, ['delete', 'staticegressips', '--all', '-n', NAMESPACE]);

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
  const rounds: Record<'others' | 'bench', Round[]> = { others: [], bench: [] };
  for (let turn = 0; turn < TURNS; turn++) {
    for (const selected of ['others', 'bench'] as const) {
      await withoutRules();
      await delay(HEARD_MS);
      const theirs = measureAdd(node, file);
      await applyManifests(layout, json(ruleObjects(selected)));
      await delay(HEARD_MS);
      rounds[selected].push({ ours: measureAdd(node, file), theirs });
    }
  }
  console.log(`CNI ADD on ${node}, with ${RULES} rules in the namespace of the pod, next to none (ms)\n`);
  console.log('| | with | without | ratio | least - greatest | target |\n|---|---|---|---|---|---|');
  console.log(row('of a pod that no rule selects', rounds.others, '1.30'));
  console.log(row('of a pod that a rule selects', rounds.bench, '1.30'));
};

const folder = mkdtempSync(join(tmpdir(), 'egress-add-'));
try {
  await main(join(folder, 'pods.json'));
} finally {
  rmSync(folder, { recursive: true, force: true });
  await kubectl(layout, ['delete', 'namespace', NAMESPACE, '--wait=false', '--ignore-not-found']);
}
