import { EGRESS_LABEL } from '../../features/partner/layout.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { FAMILIES, PLANS } from '../../layout/addresses.ts';
import type { LabLayout } from '../../layout/layout.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { applyManifests } from '../../kubernetes/control-plane.ts';
import { GROUP_VERSION } from '@unbounded/crds';

/** What an administrator and the users of a cluster change about egress addresses, one at a time. */

const [SECOND_FIRST, SECOND_BITS] = [208, 3];
const OTHER = 'other';
const LABEL = 'team';

/** Of the second pool, one of each family; no partner admits them. */
export const secondBlocks = ({ options }: LabLayout): string[] =>
  FAMILIES[options.ip].map(
    (family) => `${PLANS[family].wanHost(SECOND_FIRST)}/${(family === 4 ? 32 : 128) - SECOND_BITS}`,
  );

const secondPool = (layout: LabLayout, exclusions: readonly string[] = []): object => ({
  apiVersion: GROUP_VERSION,
  kind: 'EgressIPPool',
  metadata: { name: OTHER },
  spec: { blocks: secondBlocks(layout), nodeSelector: { matchLabels: EGRESS_LABEL }, exclusions },
});

/** It takes precedence over the rule of docs/examples for pods with a label. */
const secondRule = (spec: object = {}): object => ({
  apiVersion: GROUP_VERSION,
  kind: 'StaticEgressIP',
  metadata: { name: OTHER },
  spec: { rules: [{ podSelector: { matchLabels: { [LABEL]: OTHER } }, pool: OTHER, priority: 100, ...spec }] },
});

/** Numbers below a limit, the same for the same seed (mulberry32). */
export const randomNumbers = (seed: number): ((limit: number) => number) => {
  let state = seed >>> 0;
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
};

export interface Ground {
  readonly layout: LabLayout;
  /** That the rule of docs/examples selects. */
  readonly pods: readonly Pod[];
  /** That can own addresses. */
  readonly owners: readonly string[];
  readonly partner: string;
}

type Change = (ground: Ground, random: (limit: number) => number) => Promise<string>;

const [LABEL_KEY] = Object.keys(EGRESS_LABEL);
const labelOf = Object.entries(EGRESS_LABEL)
  .map(([key, value]) => `${key}=${value}`)
  .join(',');

const labelPod: Change = async ({ layout, pods }, random) => {
  const pod = pods[random(pods.length)]!;
  const word = random(2) === 0 ? `${LABEL}=${OTHER}` : `${LABEL}-`;
  await kubectl(layout, ['label', 'pod', pod.name, word, '--overwrite']);
  return `label ${pod.name} ${word}`;
};

const changeRule: Change = async ({ layout, partner }, random) => {
  const specs = [
    {},
    { priority: 1 },
    { cidr: `${partner}/32` },
    { except: [`${partner}/32`] },
    { addresses: 2 },
    { cidr: `${partner}/32`, whenUnavailable: 'Drop', priority: -1 },
  ];
  const spec = specs[random(specs.length)]!;
  await applyManifests(layout, JSON.stringify(secondRule(spec)));
  return `second rule ${JSON.stringify(spec)}`;
};

const removeRule: Change = async ({ layout }) => {
  await kubectl(layout, ['delete', 'staticegressip', OTHER, '--ignore-not-found']);
  return 'no second rule';
};

const changeFirstRule: Change = async ({ layout }, random) => {
  const addresses = 1 + random(2);
  const patch = [{ op: 'add', path: '/spec/rules/0/addresses', value: addresses }];
  await kubectl(layout, ['patch', 'staticegressip', 'partner', '--type=json', '-p', JSON.stringify(patch)]);
  return `first rule with ${addresses} addresses`;
};

const changePool: Change = async ({ layout }, random) => {
  const firsts = secondBlocks(layout).map((block) => block.split('/')[0]!);
  const exclusions = random(2) === 0 ? [] : firsts;
  await applyManifests(layout, JSON.stringify(secondPool(layout, exclusions)));
  return `second pool without ${exclusions.join(', ') || 'exclusions'}`;
};

const changeOwners: Change = async ({ layout, owners }, random) => {
  const node = owners[random(owners.length)]!;
  const word = random(3) === 0 ? `${LABEL_KEY}-` : labelOf;
  await kubectl(layout, ['label', 'node', node, word, '--overwrite']);
  return `label ${node} ${word}`;
};

const removePool: Change = async ({ layout }, random) => {
  if (random(2) === 0) await kubectl(layout, ['delete', 'egressippool', OTHER, '--ignore-not-found']);
  else await applyManifests(layout, JSON.stringify(secondPool(layout)));
  return 'second pool deleted or made';
};

const CHANGES: readonly Change[] = [
  labelPod,
  labelPod,
  changeRule,
  changeRule,
  removeRule,
  changeFirstRule,
  changePool,
  changeOwners,
  changeOwners,
  removePool,
];

/** Changes something, and says what. */
export const changeSomething = (ground: Ground, random: (limit: number) => number): Promise<string> =>
  CHANGES[random(CHANGES.length)]!(ground, random);

/** The second rule and its pool, and both owners. */
export const beginChanges = async ({ layout, owners }: Ground): Promise<void> => {
  await kubectl(layout, ['label', 'node', ...owners, labelOf, '--overwrite']);
  await applyManifests(layout, [secondPool(layout), secondRule()].map((one) => JSON.stringify(one)).join('\n---\n'));
};

/** As it was before: the rule of docs/examples alone. */
export const endChanges = async (ground: Ground): Promise<void> => {
  const { layout, pods, owners } = ground;
  await kubectl(layout, ['label', 'pod', ...pods.map(({ name }) => name), `${LABEL}-`]);
  await kubectl(layout, ['label', 'node', ...owners, labelOf, '--overwrite']);
  await kubectl(layout, ['delete', 'staticegressip,egressippool', OTHER, '--ignore-not-found']);
  await kubectl(layout, [
    'patch',
    'staticegressip',
    'partner',
    '--type=json',
    '-p',
    JSON.stringify([{ op: 'add', path: '/spec/rules/0/addresses', value: 1 }]),
  ]);
};
