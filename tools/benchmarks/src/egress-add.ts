import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { applyManifests, kubectl } from '@unbounded/rig/control-plane';
import { GROUP_VERSION } from '@unbounded/crds';
import { createBenchPods, listOf } from './bench-pods.ts';
import { readWorkers, startAdds } from './cni-add.ts';
import { measurePairs, type Pair, pairRow } from './paired-adds.ts';

/**
 * How long a node of the lab takes to attach a pod of a namespace with egress rules, of 200 in the cluster, next to another node that attaches one
 * of a namespace without any.
 */

const NAMESPACE = 'bench';
const OTHERS = 'bench-others';
const RULES = 200;
const PLAIN = 'bench-plain';
const TURNS = Number(process.env['ROUNDS'] ?? 4);
const PAIRS = Number(process.env['PODS'] ?? 60);
/** Until agents have heard of rules that came or went. */
const HEARD_MS = 3000;

const { layout, workers } = readWorkers();
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

const ratio = ({ oursMs, theirsMs }: Pair): number => oursMs / theirsMs;

/** @param files of pods of the namespace with rules, and of the one without */
const measureCase = async (placed: Placed, [ruled, plain]: readonly [string, string]): Promise<Pair[]> => {
  await withoutRules();
  await applyManifests(layout, listOf(ruleObjects(placed)));
  await delay(HEARD_MS);
  const pairs: Pair[] = [];
  const [one, other] = workers;
  for (let turn = 0; turn < TURNS; turn++) {
    const [ours, theirs] = turn % 2 === 0 ? [one, other] : [other, one];
    pairs.push(...(await measurePairs(startAdds(ours, ruled), startAdds(theirs, plain), PAIRS)));
  }
  return pairs;
};

const main = async (folder: string): Promise<void> => {
  const namespaces = [NAMESPACE, OTHERS, PLAIN].map((name) => ({
    ...{ apiVersion: 'v1', kind: 'Namespace' },
    metadata: { name },
  }));
  await applyManifests(layout, listOf(namespaces));
  const files = [join(folder, 'ruled.json'), join(folder, 'plain.json')] as const;
  await createBenchPods(layout, NAMESPACE, files[0]);
  await createBenchPods(layout, PLAIN, files[1]);
  console.log(
    `CNI ADD with ${RULES} rules in the cluster, next to a namespace without (ms; medians of ${TURNS * PAIRS} pairs)\n`,
  );
  console.log(
    '| pod, rules in its namespace | with | without | ratio (95 % confidence interval); target 1.30 |\n|---|---|---|---|',
  );
  for (const placed of CASES) {
    const name = `${placed.selected === 'bench' ? 'selected' : 'not selected'}, ${placed.here}`;
    console.log(pairRow(name, await measureCase(placed, files), ratio));
  }
};

const folder = mkdtempSync(join(tmpdir(), 'egress-add-'));
try {
  await main(folder);
} finally {
  rmSync(folder, { recursive: true, force: true });
  await kubectl(layout, ['delete', 'namespace', NAMESPACE, OTHERS, PLAIN, '--wait=false', '--ignore-not-found']);
}
