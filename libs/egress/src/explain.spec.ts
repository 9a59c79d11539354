import { parseAddress } from '@unbounded/ip';
import { expect, test } from 'vitest';
import { type EgressSnapshot, explain, type Explanation, planEgress } from './index.ts';
import { clusterEgress, egressPool, pod, snapshot, staticEgress } from './testdata.ts';

const ask = (given: EgressSnapshot, destination: string, name = 'p1'): Explanation =>
  explain({ plan: planEgress(given), snapshot: given }, { namespace: 'shop', name }, parseAddress(destination));
const web = { 'service-name': 'web' } as const;
const all = { podSelector: {} } as const;

test('a packet leaves with the address of the rule, from its owner', () => {
  const given = snapshot({ rules: [staticEgress([{ ...web, egressip: '192.0.2.210' }])] });
  const { owner } = planEgress(given).ownerships.get('192.0.2.210')!;
  expect(ask(given, '198.51.100.1')).toEqual({
    verdict: 'Egress',
    rule: 'StaticEgressIP/shop/partner/0',
    address: '192.0.2.210',
    owner,
    reason: `it leaves from node ${owner}`,
    passedOver: [],
  });
});

test.each(['10.244.0.9', '10.96.0.1', '192.0.2.2'])('%s is inside and never steered', (destination) => {
  const given = snapshot({ rules: [staticEgress([{ ...web, egressip: '192.0.2.210' }])] });
  expect(ask(given, destination).verdict).toBe('Inside');
});

test('without cidr both families are covered, and one without an address is dropped', () => {
  const given = snapshot({ rules: [staticEgress([{ ...web, egressip: '192.0.2.210', whenUnavailable: 'Node' }])] });
  expect(ask(given, '2001:db8:9::1')).toMatchObject({
    verdict: 'Dropped',
    reason: 'the rule has no IPv6 address that it can use',
  });
});

test('while nobody owns the address whenUnavailable counts', () => {
  const rule = { ...web, egressip: '203.0.113.1' };
  const drop = snapshot({ rules: [staticEgress([rule])] });
  expect(ask(drop, '198.51.100.1')).toMatchObject({ verdict: 'Dropped', address: '203.0.113.1' });
  const fallback = snapshot({ rules: [staticEgress([{ ...rule, whenUnavailable: 'Node' }])] });
  expect(ask(fallback, '198.51.100.1')).toMatchObject({ verdict: 'NodeAddress', address: '203.0.113.1' });
});

test('a rule that is wrong drops what its pods send, and nothing else', () => {
  const given = snapshot({ rules: [staticEgress([{ ...web, egressip: '192.0.2.1', cidr: '198.51.100.0/24' }])] });
  expect(ask(given, '198.51.100.1').verdict).toBe('Dropped');
  expect(ask(given, '203.0.113.1').verdict).toBe('NodeAddress');
});

test('a destination under except goes on to the next rule', () => {
  const given = snapshot({
    rules: [
      staticEgress([
        { ...web, egressip: '192.0.2.210', cidr: '198.51.100.0/24', except: ['198.51.100.8/29'] },
        { ...web, egressip: '192.0.2.211', cidr: '198.51.0.0/16' },
      ]),
    ],
  });
  expect(ask(given, '198.51.100.1').address).toBe('192.0.2.210');
  expect(ask(given, '198.51.100.9')).toMatchObject({
    address: '192.0.2.211',
    passedOver: [{ rule: 'StaticEgressIP/shop/partner/0', reason: 'its destinations do not hold the address' }],
  });
  expect(ask(given, '203.0.113.1').verdict).toBe('NodeAddress');
});

test.each<[what: string, given: Partial<EgressSnapshot>, winner: string]>([
  [
    'a rule of the cluster before those of the namespace, whatever their priority',
    {
      rules: [staticEgress([{ ...all, egressip: '192.0.2.210', priority: -5 }])],
      clusterRules: [
        clusterEgress([{ namespaceSelector: { matchLabels: { team: 'shop' } }, egressip: '192.0.2.211' }]),
      ],
    },
    '192.0.2.211',
  ],
  [
    'the lowest priority before the longest cidr',
    {
      rules: [
        staticEgress([
          { ...all, egressip: '192.0.2.210', cidr: '198.51.100.1/32' },
          { ...all, egressip: '192.0.2.211', priority: 99 },
        ]),
      ],
    },
    '192.0.2.211',
  ],
  [
    'the longest cidr before age',
    {
      rules: [
        staticEgress([{ ...all, egressip: '192.0.2.210', cidr: '198.51.0.0/16' }], {
          name: 'old',
          creationTimestamp: '2020-01-01T00:00:00Z',
        }),
        staticEgress([{ ...all, egressip: '192.0.2.211', cidr: '198.51.100.0/24' }]),
      ],
    },
    '192.0.2.211',
  ],
  [
    'a cidr of everything before none',
    {
      rules: [
        staticEgress([
          { ...all, egressip: '192.0.2.210' },
          { ...all, egressip: '192.0.2.211', cidr: '0.0.0.0/0' },
        ]),
      ],
    },
    '192.0.2.211',
  ],
  [
    'age before name',
    {
      rules: [
        staticEgress([{ ...all, egressip: '192.0.2.210' }], { name: 'a' }),
        staticEgress([{ ...all, egressip: '192.0.2.211' }], { name: 'b', creationTimestamp: '2020-01-01T00:00:00Z' }),
      ],
    },
    '192.0.2.211',
  ],
  [
    'the first by name',
    {
      rules: [
        staticEgress([{ ...all, egressip: '192.0.2.210' }], { name: 'b' }),
        staticEgress([{ ...all, egressip: '192.0.2.211' }], { name: 'a' }),
      ],
    },
    '192.0.2.211',
  ],
])('precedence: %s', (_, given, winner) => {
  expect(ask(snapshot(given), '198.51.100.1')).toMatchObject({ verdict: 'Egress', address: winner });
});

test('pods of a Service are covered ready or not, before they have an address; others, finished ones and hostNetwork are not', () => {
  const given = snapshot({
    rules: [staticEgress([{ ...web, egressip: '192.0.2.210' }])],
    pods: [
      pod(1, { addresses: [] }),
      pod(2, { labels: { app: 'other' } }),
      pod(3, { isHostNetwork: true }),
      pod(4, { isFinished: true }),
      pod(5, { namespace: 'bank' }),
    ],
  });
  expect(ask(given, '198.51.100.1').verdict).toBe('Egress');
  expect(ask(given, '198.51.100.1', 'p2').reason).toBe('no rule selects the pod');
  expect(ask(given, '198.51.100.1', 'p3').reason).toBe('the pod has the network of its node (hostNetwork)');
  expect(ask(given, '198.51.100.1', 'p4').reason).toBe('no rule selects the pod');
  expect(ask(given, '198.51.100.1', 'p9').verdict).toBe('UnknownPod');
  expect(planEgress(given).ruleStatuses.get('StaticEgressIP/shop/partner')!.pods).toBe(1);
  const slice = planEgress(given).slices.get('n1-0')!;
  expect(slice.pods).toMatchObject([{ uid: 'uid-p1', addresses: [], routes: [0] }]);
});

test('pods keep one of several addresses each, and all of them are used', () => {
  const pods = Array.from({ length: 60 }, (_, index) => pod(index));
  const rules = [staticEgress([{ ...web, pool: 'public', addresses: 3 }])];
  const given = snapshot({ pods, rules, pools: [egressPool({ blocks: ['192.0.2.96/28'] })] });
  const addresses = pods.map(({ name }) => ask(given, '198.51.100.1', name).address);
  expect(new Set(addresses)).toEqual(new Set(['192.0.2.96', '192.0.2.97', '192.0.2.98']));
});
