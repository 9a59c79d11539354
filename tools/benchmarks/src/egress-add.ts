import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { applyManifests, kubectl } from '@unbounded/rig/control-plane';
import { GROUP_VERSION } from '@unbounded/crds';
import { createBenchPods, listOf } from './bench-pods.ts';
import { type AddRound, measureAdd, readLab, roundsByKind } from './cni-add.ts';
import { row } from './rounds.ts';

/** How long a node of the lab takes to attach a pod with egress rules in the cluster, next to the same without any, in turns. */

const NAMESPACE = 'bench';
const OTHERS = 'bench-others';
const RULES = 200;
const TURNS = Number(process.env['ROUNDS'] ?? 5);
/** Until agents have heard of rules that came or went. */
const HEARD_MS = 3000;

const { layout, node } = readLab();
/** Of documentation (RFC 5737): nobody owns it. */
const EGRESS_ADDRESS = '198.51.100.9';
const RULES_OF_AN_OBJECT = 25;

interface Placed {
  /** Rules in the namespace of the pod; the others are in another. */
  readonly here: number;
  /** Pods that the first rule selects; the other rules select none. */
  readonly selected: 'bench' | 'others';
}

const ruleOf = (number: number, { selected }: Placed): object => ({
  egressip: EGRESS_ADDRESS,
  cidr: `192.0.2.${number}/32`,
  podSelector: { matchLabels: { app: number === 0 ? selected : 'others' } },
});

const ruleObjects = (placed: Placed): object[] => {
  const numbers = Array.from({ length: RULES }, (_, number) => number);
  const objectsIn = (namespace: string, own: readonly number[]): object[] =>
    Array.from({ length: Math.ceil(own.length / RULES_OF_AN_OBJECT) }, (_, object) => ({
      apiVersion: GROUP_VERSION,
      kind: 'StaticEgressIP',
      metadata: { name: `bench-${object}`, namespace },
      spec: {
        rules: own
          .slice(object * RULES_OF_AN_OBJECT, (object + 1) * RULES_OF_AN_OBJECT)
          .map((number) => ruleOf(number, placed)),
      },
    }));
  return [...objectsIn(NAMESPACE, numbers.slice(0, placed.here)), ...objectsIn(OTHERS, numbers.slice(placed.here))];
};

const withoutRules = async (): Promise<void> => {
  for (const namespace of [NAMESPACE, OTHERS])
    await kubectl(layout, ['delete', 'staticegressips', '--all', '-n', namespace]);
};

/** The second is the worst that can be: an agent asks for the rules of one namespace, and for those of the cluster. */
const CASES: readonly Placed[] = [10, RULES].flatMap((here) =>
  (['others', 'bench'] as const).map((selected) => ({ here, selected })),
);

const main = async (file: string): Promise<void> => {
  const namespaces = [NAMESPACE, OTHERS].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
  await applyManifests(layout, listOf(namespaces));
  await createBenchPods(layout, NAMESPACE, file);
  const rounds = CASES.map((): AddRound[] => []);
  for (let turn = 0; turn < TURNS; turn++) {
    for (const [index, placed] of CASES.entries()) {
      await withoutRules();
      await delay(HEARD_MS);
      const theirs = measureAdd(node, file);
      await applyManifests(layout, listOf(ruleObjects(placed)));
      await delay(HEARD_MS);
      rounds[index]!.push({ ours: measureAdd(node, file), theirs });
    }
  }
  console.log(`CNI ADD on ${node}, with ${RULES} rules in the cluster, next to none (ms)\n`);
  console.log(
    '| pod, rules in its namespace | with | without | ratio | least - greatest | target |\n|---|---|---|---|---|---|',
  );
  for (const [index, { here, selected }] of CASES.entries())
    for (const [kind, ofKind] of roundsByKind(rounds[index]!))
      console.log(row(`${selected === 'bench' ? 'selected' : 'not selected'}, ${here}: ${kind}`, ofKind, '1.30'));
};

const folder = mkdtempSync(join(tmpdir(), 'egress-add-'));
try {
  await main(join(folder, 'pods.json'));
} finally {
  rmSync(folder, { recursive: true, force: true });
  await kubectl(layout, ['delete', 'namespace', NAMESPACE, OTHERS, '--wait=false', '--ignore-not-found']);
}
