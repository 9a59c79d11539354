import type { GatewayPool } from '@unbounded/crds';
import { nodeFacts } from '@unbounded/membership';
import { expect, test } from 'vitest';
import type { Resolved } from './external-addresses.plan.ts';
import { keyOf, object, pool, seen, watching, world } from './gateway-world.testdata.ts';
import { type GatewayNode, planGateways } from './gateways.plan.ts';
import { planPoolConditions } from './pool-conditions.plan.ts';

const external = (name: string, text: string, status: string[] = []): GatewayNode => ({
  facts: nodeFacts({
    metadata: {
      name,
      labels: { gateway: 'p' },
      annotations: {
        'net.unbounded-cloud.io/wg-pubkey': keyOf(name),
        'net.unbounded-cloud.io/external-address': text,
      },
    },
    status: { addresses: status.map((address) => ({ type: 'ExternalIP', address })) },
  }),
  isTainted: false,
});
const listing = (name: string, externalIPs: string[]): GatewayPool => ({
  ...pool('p'),
  status: { nodes: [{ name, wireGuardPublicKey: keyOf(name), externalIPs }] },
});

test.each<[string, GatewayNode, GatewayPool, Record<string, Resolved>, string[] | undefined]>([
  ['the annotation takes precedence', external('g', '203.0.113.7', ['192.0.2.1']), pool('p'), {}, ['203.0.113.7']],
  [
    'a name stands for its addresses, in the order of the annotation',
    external('g', 'gw.example.com,203.0.113.7'),
    pool('p'),
    { 'gw.example.com': { addresses: ['198.51.100.1', '2001:db8::1'] } },
    ['203.0.113.7', '198.51.100.1', '2001:db8::1'],
  ],
  [
    'a name that has not been resolved since the start has the addresses that the pool lists',
    external('g', 'gw.example.com'),
    listing('g', ['198.51.100.1']),
    {},
    ['198.51.100.1'],
  ],
  [
    'what is resolved replaces what the pool lists',
    external('g', 'gw.example.com'),
    listing('g', ['198.51.100.1']),
    { 'gw.example.com': { addresses: ['198.51.100.2'] } },
    ['198.51.100.2'],
  ],
  [
    'what the pool lists of a family that nobody has answered for since the start stays, and nothing else of it',
    external('g', 'gw.example.com'),
    listing('g', ['198.51.100.1', '198.51.100.9', '2001:db8::9']),
    { 'gw.example.com': { addresses: ['2001:db8::1'], otherFamily: 'A: ETIMEOUT', unanswered: [4] } },
    ['2001:db8::1', '198.51.100.1', '198.51.100.9'],
  ],
  [
    'without any address it is no gateway of an External pool',
    external('g', 'gw.example.com'),
    pool('p'),
    {},
    undefined,
  ],
])('%s', (_, subject, subjectPool, resolved, want) => {
  const plan = planGateways(world({ nodes: [subject], pools: [subjectPool], resolvedOf: (name) => resolved[name] }));
  expect(plan.pools[0]!.gateways[0]?.externalIPs).toEqual(want);
  expect([...plan.names]).toEqual(subject.facts.externalNames);
});

const resolvedCondition = (plan: Parameters<typeof planPoolConditions>[0]) =>
  planPoolConditions(plan, [], seen(watching().observed)).find(({ type }) => type === 'ExternalNamesResolved');

test('a name that cannot be resolved is told with its node and what is used meanwhile', () => {
  const [plan] = planGateways(
    world({
      nodes: [external('g', 'gw.example.com')],
      pools: [pool('p')],
      resolvedOf: () => ({ addresses: ['198.51.100.1'], error: 'ENOTFOUND' }),
    }),
  ).pools;
  expect(resolvedCondition(plan!)).toMatchObject({
    status: 'False',
    reason: 'NameNotResolved',
    message: expect.stringContaining('gw.example.com of node g (ENOTFOUND; 198.51.100.1 used meanwhile)') as string,
  });
});

test('a name with an address of one family is resolved, and the message has the other family’s failure', () => {
  const [plan] = planGateways(
    world({
      nodes: [external('g', 'gw.example.com')],
      pools: [pool('p')],
      resolvedOf: () => ({ addresses: ['198.51.100.1'], otherFamily: 'AAAA: ESERVFAIL' }),
    }),
  ).pools;
  expect(resolvedCondition(plan!)).toMatchObject({
    status: 'True',
    message: expect.stringContaining('gw.example.com of node g (AAAA: ESERVFAIL)') as string,
  });
});

test('an address of a name that lies in a Site’s blocks, or is another node’s, is not listed, and is told', () => {
  const sites = [
    object('Site', 'a', { nodeCidrs: ['10.1.0.0/16'], podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/16'] }] }),
  ];
  const worker: GatewayNode = {
    facts: nodeFacts({
      metadata: { name: 'w' },
      status: { addresses: [{ type: 'InternalIP', address: '10.1.0.31' }] },
    }),
    isTainted: false,
  };
  const plan = planGateways(
    world({
      nodes: [external('g', 'gw.example.com'), worker],
      pools: [pool('p')],
      sites,
      resolvedOf: () => ({ addresses: ['10.1.0.31', '100.64.0.9', '198.51.100.1'] }),
    }),
  ).pools[0]!;
  expect(plan.gateways[0]!.externalIPs).toEqual(['198.51.100.1']);
  expect(resolvedCondition(plan)).toMatchObject({
    status: 'False',
    reason: 'AddressNotUsed',
    message: expect.stringContaining('node g: external address 10.1.0.31 (nodeCidrs of Site a), 100.64.0.9') as string,
  });
});
