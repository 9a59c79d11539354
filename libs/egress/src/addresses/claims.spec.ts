import { parseAddress, parsePrefix } from '@unbounded/ip';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Claim, type EgressSnapshot, planEgress } from '../index.ts';
import {
  egressPool,
  node,
  reportingSlice,
  snapshot,
  staticEgress,
  SUBNETS,
  withConfirmations,
  written,
} from '../testdata.ts';

/** What namespaces, kubelets and agents say of addresses: it holds up what is to be given, and takes nothing away. */

const KEY = 'StaticEgressIP/shop/partner';
const FROM_POOL = { podSelector: {}, pool: 'public' } as const;
const NAMED = { podSelector: {}, egressip: '192.0.2.200' } as const;
const pools = [egressPool({ blocks: ['192.0.2.96/28'] })];
const claim = (address: string, usage: Claim['usage'] = 'AddressOfService', by = 'Service evil/grab'): Claim => ({
  prefix: parsePrefix(address.includes('/') ? address : `${address}/32`),
  usage,
  by,
});
const reports = (given: EgressSnapshot, cidr: string): EgressSnapshot => ({
  ...given,
  slices: given.slices.map((slice) => {
    const isLiar = slice.spec.nodeName === 'n3' && slice.spec.index === 0;
    const subnets = [...SUBNETS, { interface: 'eth0', cidr }];
    return isLiar ? { ...slice, status: { ...slice.status, subnets } } : slice;
  }),
});
const settled = (given: EgressSnapshot): EgressSnapshot => withConfirmations(written(given, planEgress(given)));
const start = (rule: typeof FROM_POOL | typeof NAMED): EgressSnapshot =>
  settled(snapshot({ pools, rules: [staticEgress([rule])] }));

const ways: readonly [who: string, claims: (given: EgressSnapshot, address: string) => EgressSnapshot, by: string][] = [
  ['a Service of any namespace', (given, address) => ({ ...given, claims: [claim(address)] }), 'Service evil/grab'],
  [
    'the kubelet of a node',
    (given, address) => ({
      ...given,
      nodes: [node(1), node(2), node(3, { addresses: [parseAddress(address)] })],
    }),
    'Node n3',
  ],
  [
    'a Node with pods there',
    (given, address) => ({ ...given, claims: [claim(`${address}/32`, 'AddressOfPod', 'Node n3')] }),
    'Node n3',
  ],
  ['the agent of a node', (given, address) => reports(given, `${address}/30`), 'the agent of node n3'],
];

const table = ways.flatMap(([who, claims, by]) =>
  ([FROM_POOL, NAMED] as const).map((rule) => ({
    who,
    claims,
    by,
    rule,
    from: 'pool' in rule ? 'a pool' : 'the rule',
  })),
);

test.each(table)(
  'an address that $from gave stays as it is when $who claims it, and the rule says who does',
  ({ claims, by, rule }) => {
    const before = start(rule);
    const given = planEgress(before);
    const { addresses } = given.ruleStatuses.get(KEY)!;
    const { address } = addresses[0]!;
    const plan = planEgress(claims(before, address));
    expect(plan.ruleStatuses.get(KEY)!.addresses).toEqual(addresses);
    expect(plan.slices).toEqual(given.slices);
    expect(plan.poolStatuses.get('public')!.conditions).toMatchObject([{ status: 'True' }]);
    const accepted = plan.ruleStatuses.get(KEY)!.conditions.find(({ type }) => type === 'Accepted')!;
    expect(accepted).toMatchObject({ status: 'False', reason: 'AddressClaimed' });
    expect(accepted.message).toContain(`"${address}": ${by} claims it as `);
    expect(accepted.message).toContain(`take it away from ${by}, or give the rule another one`);
  },
);

test.each(table)('an address that $who claims is not given anew by $from', ({ claims, rule }) => {
  const fresh = (address: string) => planEgress(claims(snapshot({ pools, rules: [staticEgress([rule])] }), address));
  const wanted = 'pool' in rule ? '192.0.2.96' : NAMED.egressip;
  const { addresses } = fresh(wanted).ruleStatuses.get(KEY)!;
  expect(addresses.map(({ address }) => address)).not.toContain(wanted);
  expect(addresses.length).toBe('pool' in rule ? 1 : 0);
});

test('a pool gives none out of a block that others claim', () => {
  const claims = [claim('192.0.2.96/29', 'AddressOfPod', 'Node n3')];
  const { addresses } = planEgress(snapshot({ pools, claims, rules: [staticEgress([FROM_POOL])] })).ruleStatuses.get(
    KEY,
  )!;
  expect(addresses).toMatchObject([{ address: '192.0.2.104' }]);
});

test('what administrators give to pods or Services ends an address all the same', () => {
  const before = start(FROM_POOL);
  const cluster = { ...before.cluster, services: [parsePrefix('192.0.2.96/32')] };
  expect(planEgress({ ...before, cluster }).ruleStatuses.get(KEY)!.addresses).toMatchObject([
    { address: '192.0.2.97' },
  ]);
  const named = start(NAMED);
  const pods = [parsePrefix('192.0.2.192/26')];
  expect(planEgress({ ...named, cluster: { ...named.cluster, pods } }).ruleStatuses.get(KEY)!.addresses).toEqual([]);
});

test('subnets of nodes that cannot own the addresses of a pool do not concern it', () => {
  const selector = { matchLabels: { egress: 'yes' } };
  const own = [egressPool({ blocks: ['192.0.2.96/28'], nodeSelector: selector })];
  const nodes = [node(1, { labels: { egress: 'yes' } }), node(2), node(3)];
  const given = reports(snapshot({ nodes, pools: own, rules: [staticEgress([FROM_POOL])] }), '192.0.2.96/30');
  expect(planEgress(given).ruleStatuses.get(KEY)!.addresses).toMatchObject([{ address: '192.0.2.96' }]);
});

test.each(['0.0.0.0/0', '192.0.0.0/7', '::/0', '2000::/15'])(
  'an agent that reports %s gets no address for it, and the condition says why',
  (cidr) => {
    const nodes = [node(1)];
    const slices = [reportingSlice(nodes[0]!, [{ interface: 'eth0', cidr }])];
    const egressip = cidr.includes(':') ? '2001:db8::200' : NAMED.egressip;
    const plan = planEgress(snapshot({ nodes, slices, rules: [staticEgress([{ podSelector: {}, egressip }])] }));
    expect(plan.ownerships.get(egressip)).toMatchObject({ owner: undefined, trouble: 'OutsideSubnets' });
    const elected = plan.ruleStatuses.get(KEY)!.conditions.find(({ type }) => type === 'OwnersElected')!;
    expect(elected.message).toContain(`node n1 reports ${cidr}, which does not count: it is shorter than`);
  },
);

test('over any claims an address that a rule has stays with it', () => {
  const anyClaim = fc.record({
    address: fc.integer({ min: 90, max: 115 }).map((last) => `192.0.2.${last}`),
    length: fc.constantFrom(28, 30, 32),
    usage: fc.constantFrom<Claim['usage']>('AddressOfService', 'AddressOfPod'),
    isOfNode: fc.boolean(),
  });
  const rules = [
    staticEgress([
      { ...FROM_POOL, addresses: 3 },
      { podSelector: {}, egressip: '192.0.2.105' },
    ]),
  ];
  fc.assert(
    fc.property(fc.array(anyClaim, { maxLength: 8 }), fc.array(anyClaim, { maxLength: 8 }), (first, second) => {
      const withClaims = (given: EgressSnapshot, made: typeof first): EgressSnapshot => ({
        ...given,
        claims: made.flatMap(({ address, usage, isOfNode }) => (isOfNode ? [] : [claim(address, usage)])),
        nodes: [1, 2, 3].map((number) => {
          const own = made.flatMap(({ address, isOfNode }) => (isOfNode ? [parseAddress(address)] : []));
          return number === 3 ? node(3, { addresses: own }) : node(number);
        }),
      });
      const before = settled(withClaims(snapshot({ pools, rules }), first));
      const texts = (given: EgressSnapshot): string[] =>
        planEgress(given)
          .ruleStatuses.get(KEY)!
          .addresses.map(({ address }) => address);
      expect(texts(withClaims(before, second))).toEqual(expect.arrayContaining(texts(before)));
    }),
    { numRuns: 200 },
  );
});
