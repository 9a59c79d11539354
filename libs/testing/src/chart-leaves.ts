import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { parse } from 'yaml';

import { chartFolder } from './chart.ts';
import { DIGEST } from './chart-values.ts';

/** Every value that the chart has, each with another one that is valid, and what else has to be set for it to count. */

/** As in `--set`: no part has a dot. */
export type Path = readonly string[];
export interface Leaf {
  readonly path: Path;
  readonly other: unknown;
}

type Tree = Readonly<Record<string, unknown>>;
const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
const leavesOf = (tree: Tree, above: Path = []): (readonly [Path, unknown])[] =>
  Object.entries(tree).flatMap(([key, value]) => {
    const path = [...above, key];
    return isTree(value) ? leavesOf(value, path) : [[path, value] as const];
  });

const umbrella = parse(readFileSync(join(chartFolder, 'values.yaml'), 'utf8')) as Record<string, Tree>;
export const parts = Object.keys(umbrella).filter((name) => name !== 'global');
const defaultsOf = (name: string): Tree =>
  parse(readFileSync(join(chartFolder, 'charts', name, 'values.yaml'), 'utf8')) as Tree;

export const nested = (path: Path, value: unknown): object =>
  path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as object;
export const merged = (...trees: readonly object[]): object =>
  trees.reduce<Record<string, unknown>>((all, tree) => {
    for (const [key, value] of Object.entries(tree) as [string, unknown][])
      all[key] = isTree(all[key]) && isTree(value) ? merged(all[key], value) : value;
    return { ...all };
  }, {});

const IMAGES = [{ registry: 'm.example' }, { repository: 'r.example/other' }, { tag: 'v9' }, { digest: DIGEST }];
/** Where the type of the default does not say what is valid: by the end of the path. */
const OTHERS: readonly (readonly [RegExp, ...unknown[]])[] = [
  [/\.cniPlugins\.image$/, 'r.example/cni'],
  [/\.(image|relayImage)$/, ...IMAGES],
  // In the base it is enabled.
  [/^[^.]+\.enabled$/, false],
  [/\.logLevel$/, 'debug'],
  [/\.image\.digest$/, DIGEST],
  [/\.image\.pullPolicy$/, 'Always'],
  [/\.(pullSecrets|secretNames|command)$/, ['other']],
  [/\.host\.(keys|state|cniConf|cniBin)$/, '/other'],
  [/\.resourceQuota\.pods$/, 7],
  [/\.tracing\.endpoint$/, 'http://otel.example:4318'],
  [/\.healthAddress$/, '0.0.0.0'],
  [/\.extraArgs$/, ['--other=1']],
  [/\.extraEnv$/, [{ name: 'OTHER', value: '1' }], [{ name: 'O', valueFrom: { fieldRef: { fieldPath: 'spec.x' } } }]],
  [/^monitoring\..*\.labels$/, { other: 'x' }],
  [/^monitoring\..*\.interval$/, '99s'],
  [/\.(nodeSelector|podAnnotations|podLabels|annotations|seLinuxOptions)$/, { other: 'x' }],
  [/\.limits$/, { memory: '99Mi' }],
  [/\.cpu$/, '99m'],
  [/\.memory$/, '99Mi'],
  [/\.affinity$/, { nodeAffinity: {} }],
  [/\.tolerations$/, [{ key: 'other', operator: 'Exists' }]],
  [/\.topologySpreadConstraints$/, [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway' }]],
  [/\.(clusterCidrs|proxyProtocol)$/, ['10.9.0.0/16']],
  [/^(node-dataplane|tailnet)\.updateStrategy\.type$/, 'OnDelete'],
  [/^node-keeper\.updateStrategy\.type$/, 'RollingUpdate'],
  [/^relay\.updateStrategy\.type$/, 'RollingUpdate'],
  [/\.updateStrategy\.type$/, 'Recreate'],
  [/\.hostFirewall$/, 'Report'],
  [/\.egress$/, 'Off'],
  [/\.l2$/, 'On'],
  [/\.redis\.url$/, 'redis://other.example'],
  [/^relay\.auth$/, 'prefer'],
  [/^relay\.drainTime$/, '99s'],
  [/^relay\.service\.type$/, 'ClusterIP'],
  [/^relay\.service\.nodePort$/, 30_000],
  [/^relay\.service\.externalTrafficPolicy$/, 'Cluster'],
];
/** @throws Error for a value of which nobody said what else it may be */
const othersOf = (path: Path, value: unknown): readonly unknown[] => {
  const found = OTHERS.find(([end]) => end.test(path.join('.')));
  if (found) return found.slice(1);
  if (typeof value === 'boolean') return [!value];
  if (typeof value === 'number') return [value + 1];
  if (typeof value === 'string') return ['other'];
  throw new Error(`${path.join('.')}: add another valid value to OTHERS of chart-leaves.ts`);
};

const inParts = parts.flatMap((name) => leavesOf(defaultsOf(name), [name]));
const inUmbrella = leavesOf(umbrella).filter(([path]) => path.at(-1) !== 'enabled' || path[0] === 'global');
export const leaves: readonly Leaf[] = [...inUmbrella, ...inParts].flatMap(([path, value]) =>
  othersOf(path, value).map((other) => ({ path, other })),
);

/** What a rendering cannot show, and why. */
export const WITHOUT_EFFECT: ReadonlyMap<string, string> = new Map([
  ['relay.updateStrategy.type', 'RollingUpdate is the one value that is valid'],
]);

const redis = { url: 'redis://redis.example' };
/** What has to be set besides: by the beginning of the path. */
const NEEDS: readonly (readonly [RegExp, object])[] = [
  [/^global\.(?!tailnet|resourceQuota)/, { 'cidr-allocator': { enabled: true }, 'node-dataplane': { enabled: true } }],
  [/^global\.(tailnet|apiServer)/, { 'tailnet-registrar': { enabled: true } }],
  [/^global\.apiServer\.port/, { global: { apiServer: { host: 'api.example.com' } } }],
  [/^tailnet\./, { 'tailnet-registrar': { enabled: true } }],
  [/^relay\./, { 'gateway-health': { enabled: true } }],
  [/^relay\.service\.nodePort/, { relay: { service: { type: 'NodePort' } } }],
  [/^relay\.autoscaling\.(?!enabled)/, { relay: { autoscaling: { enabled: true } } }],
  [/^status-aggregator\.(replicas|redis\.(?!url)|autoscaling|podDisruptionBudget)/, { 'status-aggregator': { redis } }],
  [/^status-aggregator\.autoscaling\.(?!enabled)/, { 'status-aggregator': { autoscaling: { enabled: true } } }],
  [/^status-aggregator\.podDisruptionBudget/, { 'status-aggregator': { replicas: 2 } }],
  [/^node-dataplane\.tailnet/, { 'tailnet-registrar': { enabled: true }, tailnet: { enabled: true } }],
  [/^node-dataplane\.l2/, { 'l2-networks': { enabled: true } }],
  [/^node-dataplane\.cniPlugins\.command/, { 'node-dataplane': { cniPlugins: { image: 'r.example/cni' } } }],
  [/^node-keeper\.updateStrategy\.rollingUpdate/, { 'node-keeper': { updateStrategy: { type: 'RollingUpdate' } } }],
];
const nothing = Object.fromEntries(parts.map((name) => [name, { enabled: false }]));

/** The part alone, with what it needs. */
export const only = (name: string): object => merged(nothing, name === 'global' ? {} : { [name]: { enabled: true } });
/** Values with which the leaf counts, before it is changed. */
export const aroundLeaf = ({ path }: Leaf): object => {
  const needs = NEEDS.filter(([begin]) => begin.test(path.join('.'))).map(([, values]) => values);
  return merged(only(path[0]!), ...needs);
};

const isSwitch = ({ path }: Leaf): boolean => path.length === 2 && path[1] === 'enabled';
const othersBefore = (leaf: Leaf): number =>
  leaves.slice(0, leaves.indexOf(leaf)).filter(({ path }) => path.join('.') === leaf.path.join('.')).length;
/** Every other value, in as few sets as a value has others. Apps are enabled: without one its values do not count. */
export const othersTogether = (): object[] => {
  const sets = Map.groupBy(
    leaves.filter((leaf) => !isSwitch(leaf)),
    othersBefore,
  );
  const enabled = Object.fromEntries(parts.map((name) => [name, { enabled: true }]));
  return [...sets.values()].map((set) =>
    merged(...set.map(aroundLeaf), enabled, ...set.map(({ path, other }) => nested(path, other))),
  );
};
