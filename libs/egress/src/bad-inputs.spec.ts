import type { StaticEgressRule } from '@unbounded/crds';
import { parsePrefix } from '@unbounded/ip';
import { expect, test } from 'vitest';
import { planEgress } from './plan.ts';
import type { EgressSnapshot } from './snapshot.ts';
import { confirmed, egressPool, node, pod, reportingSlice, snapshot, staticEgress, written } from './testdata.ts';

/** Each row: what is wrong, what is added to a cluster with a good rule, and the condition of the object that is wrong. */

const GOOD = staticEgress([{ egressip: '192.0.2.200', podSelector: { matchLabels: { app: 'good' } } }], {
  name: 'good',
});
const goodPod = pod(99, { labels: { app: 'good' } });
const bad = (rule: StaticEgressRule, rest: Partial<EgressSnapshot> = {}): Partial<EgressSnapshot> => ({
  rules: [staticEgress([rule], { name: 'bad' })],
  ...rest,
});
const served = { 'service-name': 'web' } as const;
const young = { creationTimestamp: '2026-01-09T00:00:00Z' };

const table: readonly [what: string, added: Partial<EgressSnapshot>, type: string, reason: string, message: string][] =
  [
    [
      'the address of a node',
      bad({ ...served, egressip: '192.0.2.1' }),
      'Accepted',
      'AddressOfNode',
      'spec.rules[0].egressip "192.0.2.1": is the address of a node: take one that no host has',
    ],
    [
      'an address of pods',
      bad({ ...served, egressips: ['192.0.2.210', '10.244.7.7'] }),
      'Accepted',
      'AddressOfPod',
      'spec.rules[0].egressips[1] "10.244.7.7": is inside a block of pods: take one outside of the cluster’s networks',
    ],
    [
      'an address of Services',
      bad({ ...served, egressip: '10.96.0.10' }),
      'Accepted',
      'AddressOfService',
      'spec.rules[0].egressip "10.96.0.10": is inside a block of Services: take one outside of the cluster’s networks',
    ],
    [
      'a router of a pool',
      bad(
        { ...served, egressip: '192.0.2.252' },
        { pools: [egressPool({ blocks: ['192.0.2.96/28'], nextHops: ['192.0.2.252'] })] },
      ),
      'Accepted',
      'AddressOfRouter',
      'spec.rules[0].egressip "192.0.2.252": is a next hop of an EgressIPPool: take one that no host has',
    ],
    [
      'the broadcast address of a subnet',
      bad({ ...served, egressip: '192.0.2.255' }),
      'Accepted',
      'NotUnicast',
      'spec.rules[0].egressip "192.0.2.255": is no address that a host can have (multicast, loopback, link-local, or that of a whole subnet): take another one',
    ],
    [
      'an address outside of every candidate’s subnets',
      bad({ ...served, egressip: '203.0.113.5' }),
      'OwnersElected',
      'OutsideSubnets',
      'spec.rules[0].egressip "203.0.113.5": is outside of the networks of all nodes: take an address of such a network, or a pool with announce None and a route to its owner',
    ],
    [
      'addresses of another family than cidr',
      bad({ ...served, egressips: ['192.0.2.210'], cidr: '2001:db8:9::/48' }),
      'Accepted',
      'FamilyMismatch',
      'spec.rules[0].egressips "192.0.2.210": must hold an IPv6 address, the family of cidr, or nothing leaves',
    ],
    [
      'a pool without the family of cidr',
      bad(
        { ...served, pool: 'public', cidr: '2001:db8:9::/48' },
        { pools: [egressPool({ blocks: ['192.0.2.96/30'] })] },
      ),
      'Accepted',
      'FamilyMismatch',
      'spec.rules[0].pool "public": has no IPv6 addresses, which cidr needs: add a block of that family',
    ],
    [
      'a pool that is exhausted',
      bad({ ...served, pool: 'public', addresses: 5 }, { pools: [egressPool({ blocks: ['192.0.2.96/30'] })] }),
      'AddressesAssigned',
      'PoolExhausted',
      'spec.rules[0].pool "public": has 4 of 5 further IPv4 addresses free: add a block to it, or lower addresses',
    ],
    [
      'a pool that does not exist',
      bad({ ...served, pool: 'nowhere' }),
      'Accepted',
      'PoolMissing',
      'spec.rules[0].pool "nowhere": no EgressIPPool has this name: create it, or name another one',
    ],
    [
      'a Service that does not exist',
      bad({ 'service-name': 'gone', egressip: '192.0.2.210' }),
      'Accepted',
      'ServiceMissing',
      'spec.rules[0].service-name "gone": namespace shop has no Service of this name: create it, or use podSelector',
    ],
    [
      'a Service without a selector',
      bad(
        { 'service-name': 'outside', egressip: '192.0.2.210' },
        { services: [{ namespace: 'shop', name: 'outside', selector: undefined }] },
      ),
      'Accepted',
      'ServiceWithoutSelector',
      'spec.rules[0].service-name "outside": the Service selects no pods: give it a selector, or use podSelector',
    ],
    [
      'a namespace that may not use the pool',
      bad(
        { ...served, pool: 'public' },
        { pools: [egressPool({ blocks: ['192.0.2.96/30'], namespaceSelector: { matchLabels: { team: 'bank' } } })] },
      ),
      'Accepted',
      'IneligibleNamespace',
      'spec.rules[0].pool "public": its namespaceSelector does not select namespace shop: name another pool, or label the namespace',
    ],
    [
      'an address of a pool that the namespace may not use',
      bad(
        { ...served, egressip: '192.0.2.97' },
        { pools: [egressPool({ blocks: ['192.0.2.96/30'], namespaceSelector: { matchLabels: { team: 'bank' } } })] },
      ),
      'Accepted',
      'IneligibleNamespace',
      'spec.rules[0].egressip "192.0.2.97": belongs to EgressIPPool public, whose namespaceSelector does not select namespace shop: take another address, or label the namespace',
    ],
    [
      'a pool that selects no node',
      bad(
        { ...served, pool: 'public' },
        { pools: [egressPool({ blocks: ['192.0.2.96/30'], nodeSelector: { matchLabels: { egress: 'yes' } } })] },
      ),
      'OwnersElected',
      'NoCandidate',
      'spec.rules[0].pool "192.0.2.96": there are no nodes that nodeSelector of EgressIPPool public selects: label a node, or change nodeSelector',
    ],
    [
      'pods with the network of their node',
      bad({ ...served, egressip: '192.0.2.210' }, { pods: [pod(1), pod(2, { isHostNetwork: true }), goodPod] }),
      'PodsCovered',
      'HostNetwork',
      'spec.rules[0] "shop/p2": these pods have the network of their node (hostNetwork) and leave with its address: leave them out of the selection',
    ],
    [
      'a cidr that is none',
      bad({ ...served, egressip: '192.0.2.210', cidr: '198.51.100.7/24' }),
      'Accepted',
      'InvalidDestination',
      'spec.rules[0].cidr "198.51.100.7/24": must be an address block without host bits, like 198.51.100.0/24',
    ],
    [
      'no pods',
      bad({ egressip: '192.0.2.210' }),
      'Accepted',
      'InvalidSelection',
      'spec.rules[0].service-name "": must be the name of a Service, or podSelector must be given instead of it',
    ],
    [
      'a rule that another one shadows',
      {
        rules: [
          staticEgress([{ ...served, egressip: '192.0.2.209' }], {
            name: 'first',
            creationTimestamp: '2025-01-01T00:00:00Z',
          }),
          staticEgress([{ podSelector: { matchLabels: { app: 'web' } }, egressip: '192.0.2.210' }], { name: 'bad' }),
        ],
      },
      'Accepted',
      'Shadowed',
      'spec.rules[0] "shop/p1, shop/p2, shop/p3": StaticEgressIP/shop/first/0 takes precedence for all destinations of the rule: change priority or the selection of one of them',
    ],
  ];

const clusterWith = ({ rules = [], services = [], ...rest }: Partial<EgressSnapshot>): EgressSnapshot => {
  const base = snapshot();
  return {
    ...base,
    pods: [...base.pods, goodPod],
    ...rest,
    services: [...base.services, ...services],
    rules: [...rules, GOOD],
  };
};

/** Agents have taken what they own. */
const held = (before: EgressSnapshot): EgressSnapshot => {
  const after = written(before, planEgress(before));
  return { ...after, slices: after.slices.map(confirmed) };
};

test.each(table)(
  '%s: a condition with field, value and remedy, and nothing else is affected',
  (_, added, type, reason, message) => {
    const cluster = clusterWith(added);
    const conditions = planEgress(cluster).ruleStatuses.get('StaticEgressIP/shop/bad')!.conditions;
    const condition = conditions.find((one) => one.type === type)!;
    expect({ status: condition.status, reason: condition.reason, message: condition.message }).toEqual({
      status: 'False',
      reason,
      message,
    });
    expect(conditions.find((one) => one.type === 'Ready')!.status).toBe('False');

    const plan = planEgress(held(cluster));
    const alone = planEgress(held(clusterWith({})));
    const good = 'StaticEgressIP/shop/good';
    expect(plan.ruleStatuses.get(good)).toEqual(alone.ruleStatuses.get(good));
    expect(plan.ruleStatuses.get(good)!.conditions.every(({ status }) => status === 'True')).toBe(true);
    expect(plan.routedPods.get(goodPod.uid)).toEqual(alone.routedPods.get(goodPod.uid));
  },
);

test('an older pool keeps addresses that a younger one has too; the younger one says so and gives its others', () => {
  const pools = [
    egressPool({ blocks: ['192.0.2.96/30'] }, { name: 'old' }),
    egressPool({ blocks: ['192.0.2.96/29'] }, { name: 'new', ...young }),
  ];
  const plan = planEgress(snapshot({ pools, rules: [staticEgress([{ ...served, pool: 'new' }])] }));
  expect(plan.ruleStatuses.get('StaticEgressIP/shop/partner')!.addresses).toMatchObject([{ address: '192.0.2.100' }]);
  expect(plan.poolStatuses.get('old')!.conditions).toMatchObject([{ type: 'Accepted', status: 'True' }]);
  expect(plan.poolStatuses.get('new')).toEqual({
    assigned: 1,
    free: 3,
    conditions: [
      {
        type: 'Accepted',
        status: 'False',
        reason: 'PoolOverlap',
        message:
          'spec.blocks[0] "192.0.2.96/29": shares addresses with the older EgressIPPool old, which keeps them: take another block',
      },
    ],
  });
});

test('a pool never gives what is inside of the cluster, and says so', () => {
  const cluster = { pods: [parsePrefix('192.0.2.96/30')], services: [] };
  const pools = [egressPool({ blocks: ['192.0.2.96/29'] })];
  const plan = planEgress(snapshot({ pools, cluster, rules: [staticEgress([{ ...served, pool: 'public' }])] }));
  expect(plan.ruleStatuses.get('StaticEgressIP/shop/partner')!.addresses).toMatchObject([{ address: '192.0.2.100' }]);
  expect(plan.poolStatuses.get('public')!.conditions).toMatchObject([
    { status: 'False', reason: 'PoolOverlapsCluster' },
  ]);
});

test('an address that is allocated cannot be named by another rule', () => {
  const pools = [egressPool({ blocks: ['192.0.2.96/30'] })];
  const before = snapshot({ pools, rules: [staticEgress([{ ...served, pool: 'public' }])] });
  const after = written(before, planEgress(before));
  const thief = staticEgress([{ ...served, egressip: '192.0.2.96' }], {
    name: 'bad',
    creationTimestamp: '2020-01-01T00:00:00Z',
  });
  const plan = planEgress({ ...after, rules: [...after.rules, thief] });
  expect(plan.ruleStatuses.get('StaticEgressIP/shop/bad')!.conditions).toMatchObject([
    { type: 'Accepted', reason: 'AddressInUse' },
    {},
    {},
    {},
    {},
  ]);
  expect(plan.ruleStatuses.get('StaticEgressIP/shop/partner')!.addresses).toMatchObject([{ address: '192.0.2.96' }]);
});

test('an owner that does not answer keeps its address, and the condition names the annotation that takes it away', () => {
  const first = snapshot({ rules: [staticEgress([{ ...served, egressip: '192.0.2.210' }])] });
  const owned = written(first, planEgress(first));
  const { owner } = planEgress(owned).ownerships.get('192.0.2.210')!;
  const withOwner = (change: object): EgressSnapshot => ({
    ...owned,
    slices: owned.slices.map(confirmed),
    nodes: owned.nodes.map((one) => (one.name === owner ? { ...one, ...change } : one)),
  });
  const silent = planEgress(withOwner({ isAlive: false }));
  expect(silent.ownerships.get('192.0.2.210')).toMatchObject({ owner, trouble: 'OwnerSilent' });
  const elected = silent.ruleStatuses
    .get('StaticEgressIP/shop/partner')!
    .conditions.find(({ type }) => type === 'OwnersElected')!;
  expect(elected.message).toContain(
    `its owner ${owner} does not answer and may still hold it: restore it, delete its Node, or, when it is off, annotate the Node with net.unbounded-cloud.io/egress-fenced`,
  );
  // An agent that answers is asked, whatever an operator states.
  expect(planEgress(withOwner({ isFenced: true })).ownerships.get('192.0.2.210')).toMatchObject({
    owner: undefined,
    blockedBy: owner,
  });
  const moved = planEgress(withOwner({ isAlive: false, isFenced: true })).ownerships.get('192.0.2.210')!;
  expect(moved.trouble).toBe('AddressNotHeld');
  expect(moved.owner).not.toBe(owner);
});

test('until its owner has said that it holds an address a rule is not ready, and leads to it already', () => {
  const first = snapshot({ rules: [staticEgress([{ ...served, egressip: '192.0.2.210' }])] });
  const plan = planEgress(first);
  const { owner } = plan.ownerships.get('192.0.2.210')!;
  const conditions = (of: typeof plan) => of.ruleStatuses.get('StaticEgressIP/shop/partner')!.conditions;
  expect(conditions(plan).find(({ type }) => type === 'OwnersElected')).toMatchObject({
    status: 'False',
    reason: 'AddressNotHeld',
    message: expect.stringContaining(`its owner ${owner} has not taken it yet`),
  });
  expect(plan.routedPods.size).toBe(3);
  const taken = planEgress({ ...first, slices: written(first, plan).slices.map(confirmed) });
  expect(conditions(taken).map(({ status }) => status)).toEqual(Array(5).fill('True'));
  // What another node says that it holds, or this one held of an earlier grant, does not count.
  const slices = written(first, plan).slices.map((slice) =>
    slice.spec.nodeName === owner
      ? { ...slice, status: { ...slice.status, held: [{ address: '192.0.2.210', epoch: 0 }] } }
      : { ...slice, status: { ...slice.status, held: [{ address: '192.0.2.210', epoch: 1 }] } },
  );
  expect(planEgress({ ...first, slices }).ownerships.get('192.0.2.210')!.trouble).toBe('AddressNotHeld');
});

test('without an agent that answers nobody owns an address', () => {
  const nodes = [node(1, { isAlive: false })];
  const plan = planEgress(
    snapshot({
      nodes,
      slices: nodes.map((one) => reportingSlice(one)),
      rules: [staticEgress([{ ...served, egressip: '192.0.2.210' }])],
    }),
  );
  expect(plan.ownerships.get('192.0.2.210')).toMatchObject({ owner: undefined, trouble: 'NoLiveCandidate' });
});
