import type { GatewayPool, SiteNodeSlice } from '@unbounded/crds';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { type NodeFacts, type SettledNode, settleNodes } from './index.ts';
import { type Init, node, pool, site, sites, slice } from './settle.testdata.ts';

/** Site a: nodes 10.1.0.0/16, pods 100.64.0.0/16; b: 10.2.0.0/16, 100.65.0.0/16. */
const GATEWAY = { labels: { gw: 'p' } };
const gateway = (name: string, init: Init): NodeFacts => node(name, { ...GATEWAY, ...init });
const settle = (
  nodes: readonly NodeFacts[],
  pools: readonly GatewayPool[] = [pool()],
  slices: readonly SiteNodeSlice[] = [],
) => new Map(settleNodes({ nodes, sites, pools, slices }).map((entry) => [entry.facts.name, entry]));
const listed = (name: string, externalIPs: readonly string[]): GatewayPool =>
  pool([{ name, wireGuardPublicKey: 'k', externalIPs }]);
const reasonsOf = ({ problems }: SettledNode): string[] => problems.map(({ reason }) => reason);

/** What gateway-health settles: the addresses of the annotation's DNS names stand beside the literal ones. */
const named = (name: string, answer: readonly string[], init: Init = {}): NodeFacts => {
  const facts = gateway(name, { annotated: 'gw.example.com', ...init });
  return { ...facts, externalIPs: [...facts.externalIPs, ...answer], externalNames: [] };
};

describe('an external address that a kubelet states or a DNS server answers', () => {
  const elsewhere = ['100.65.0.9', '100.64.0.9', '10.2.0.200', '192.0.2.1'];

  test.each([
    ['kubelet', gateway('g', { ip: ['10.1.0.9'], external: elsewhere }), 'status.addresses'],
    [
      'DNS',
      named('g', elsewhere, { ip: ['10.1.0.9'] }),
      'metadata.annotations[net.unbounded-cloud.io/external-address]',
    ],
  ])('is not used inside blocks of pods and of another Site’s nodes, and the Node is told (%s)', (_, facts, field) => {
    const settled = settle([facts]).get('g')!;
    expect(settled.facts.externalIPs).toEqual(['192.0.2.1']);
    expect(settled.problems).toMatchObject([{ reason: 'ExternalAddressInSite', field }]);
    expect(settled.problems[0]!.message).toContain(
      '100.65.0.9 (cidrBlocks of Site b), 100.64.0.9 (cidrBlocks of Site a), 10.2.0.200 (nodeCidrs of Site b)',
    );
  });

  test('is not used inside what a pool routes, unless an administrator wrote it or it was listed before', () => {
    const pools = [{ ...pool(), spec: { ...pool().spec, routedCidrs: ['198.51.100.0/24'] } }];
    const settled = settle([named('g', ['198.51.100.7', '192.0.2.1'], { ip: ['10.1.0.9'] })], pools).get('g')!;
    expect(settled.facts.externalIPs).toEqual(['192.0.2.1']);
    expect(settled.problems[0]!.message).toContain('198.51.100.7 (routedCidrs of GatewayPool p)');
    const written = gateway('g', { ip: ['10.1.0.9'], annotated: '198.51.100.7' });
    expect(settle([written], pools).get('g')!.facts.externalIPs).toEqual(['198.51.100.7']);
    const [before] = [{ ...listed('g', ['198.51.100.7']), spec: pools[0]!.spec }];
    expect(settle([named('g', ['198.51.100.7'], { ip: ['10.1.0.9'] })], [before]).get('g')!.facts.externalIPs).toEqual([
      '198.51.100.7',
    ]);
  });

  test('is used inside the nodeCidrs of its own Site: nodes can have public addresses', () => {
    const settled = settle([gateway('g', { ip: ['10.1.0.9'], external: ['10.1.0.9', '10.1.0.10'] })]).get('g')!;
    expect(settled.facts.externalIPs).toEqual(['10.1.0.9', '10.1.0.10']);
    expect(settled.problems).toEqual([]);
  });

  test('of a gateway that is in no Site is used in no Site’s blocks', () => {
    const settled = settle([gateway('g', { external: ['10.1.0.200', '100.64.0.9', '192.0.2.1'] })]).get('g')!;
    expect(settled.facts.externalIPs).toEqual(['192.0.2.1']);
  });

  test('stays if the pool lists it for this node: the Site’s block came later', () => {
    const facts = gateway('g', { ip: ['10.1.0.9'], external: ['100.65.0.9'] });
    expect(settle([facts], [listed('g', ['100.65.0.9'])]).get('g')).toMatchObject({
      facts: { externalIPs: ['100.65.0.9'] },
      problems: [],
    });
    expect(settle([facts], [listed('other', ['100.65.0.9'])]).get('g')!.facts.externalIPs).toEqual([]);
  });

  test('is told of no node that no pool selects: nothing uses it', () => {
    expect(settle([node('w', { ip: ['10.1.0.9'], external: ['100.65.0.9'] })]).get('w')!.problems).toEqual([]);
  });
});

test('an address that an administrator wrote into the annotation counts anywhere', () => {
  const settled = settle([gateway('g', { ip: ['10.1.0.9'], annotated: '100.65.0.9,10.2.0.200' })]).get('g')!;
  expect(settled).toMatchObject({ facts: { externalIPs: ['100.65.0.9', '10.2.0.200'] }, problems: [] });
});

describe('an InternalIP inside its own Site', () => {
  const victim = node('victim', { ip: ['10.1.0.31'], age: 9 });
  const victimListed = slice([{ name: 'victim', internalIPs: ['10.1.0.31'] }]);

  test.each([
    ['a kubelet’s, recorded or not', gateway('g', { ip: ['10.1.0.9'], external: ['10.1.0.31'], age: 1 })],
    ['a DNS answer', named('g', ['10.1.0.31'], { ip: ['10.1.0.9'], age: 1 })],
  ])('is never lost to an external address: %s', (_, facts) => {
    for (const pools of [[pool()], [listed('g', ['10.1.0.31'])]])
      for (const slices of [[], [victimListed]]) {
        const settled = settle([facts, victim], pools, slices);
        expect(settled.get('victim')).toMatchObject({ facts: { internalIPs: ['10.1.0.31'] }, problems: [] });
        expect(settled.get('g')!.facts.externalIPs).toEqual([]);
        expect(settled.get('g')!.problems).toMatchObject([{ reason: 'AddressTaken' }]);
        expect(settled.get('g')!.problems[0]!.message).toContain('10.1.0.31 is the InternalIP of node victim');
      }
  });

  test('is never lost to what a pool lists for a DNS name, by those who do not resolve it', () => {
    const facts = gateway('g', { ip: ['10.1.0.9'], annotated: 'gw.example.com', age: 1 });
    const settled = settle([facts, victim], [listed('g', ['10.1.0.31'])], [victimListed]);
    expect(settled.get('victim')).toMatchObject({ facts: { internalIPs: ['10.1.0.31'] }, problems: [] });
  });

  test('is lost to an address that an administrator gave a gateway, and the message says so', () => {
    const settled = settle(
      [gateway('g', { ip: ['10.1.0.9'], annotated: '10.1.0.31' }), victim],
      [pool()],
      [victimListed],
    );
    expect(settled.get('victim')!.facts.internalIPs).toEqual([]);
    expect(settled.get('victim')!.problems[0]!.message).toContain(
      'is an external address of node g by its annotation: correct the kubelet',
    );
  });
});

test('external addresses of nodes that no pool selects take nothing from anybody', () => {
  const free = Array.from({ length: 31 }, (_, index) => `10.2.0.${index + 100}`);
  const settled = settle([
    node('worker', { ip: ['10.1.0.9'], external: [...free, '192.0.2.1'], age: 1 }),
    node('new', { ip: ['10.2.0.100'], age: 9 }),
    gateway('g', { ip: ['10.1.0.10'], external: ['192.0.2.1'], age: 9 }),
  ]);
  expect(settled.get('new')).toMatchObject({ facts: { internalIPs: ['10.2.0.100'] }, problems: [] });
  expect(settled.get('g')).toMatchObject({ facts: { externalIPs: ['192.0.2.1'] }, problems: [] });
  expect(settled.get('worker')!.problems).toEqual([]);
});

describe('an external address of two gateways', () => {
  const stated = (name: string, age: number) => gateway(name, { external: ['192.0.2.1'], age });

  test('stays with the one that the pool lists with it, then with the older Node', () => {
    const nodes = [stated('a', 1), stated('z', 5)];
    const byRecord = settle(nodes, [listed('z', ['192.0.2.1'])]);
    expect(byRecord.get('a')!.problems[0]!.message).toContain('is that of node z, which was listed with it first');
    expect(byRecord.get('z')!.problems).toEqual([]);
    const byAge = settle(nodes);
    expect(byAge.get('z')!.problems[0]!.message).toContain('is that of node a, which is older');
  });

  test('that a DNS name stands for is not taken from the gateway whose kubelet states it', () => {
    const settled = settle([stated('a', 1), named('z', ['192.0.2.1'])], [listed('a', ['192.0.2.1'])]);
    expect(reasonsOf(settled.get('z')!)).toEqual(['AddressTaken']);
    expect(settled.get('a')!.problems).toEqual([]);
  });

  test('is shared by those whose annotations name it, as behind one NAT', () => {
    const settled = settle([
      named('a', ['192.0.2.1']),
      named('b', ['192.0.2.1']),
      gateway('c', { annotated: '192.0.2.1' }),
    ]);
    for (const entry of settled.values())
      expect(entry).toMatchObject({ facts: { externalIPs: ['192.0.2.1'] }, problems: [] });
  });
});

describe('addresses of pods in a block inside the nodes’ range', () => {
  const layout = [{ ...site('a', '10.1.0.0/16', '10.1.128.0/17') }, { ...site('b', '10.2.0.0/16', '100.65.0.0/16') }];
  const settleIn = (nodes: readonly NodeFacts[], slices: readonly SiteNodeSlice[] = []) =>
    settleNodes({ nodes, sites: layout, pools: [pool()], slices });

  test('are no node’s, unless it was listed with one before', () => {
    const facts = node('w', { ip: ['10.1.0.9', '10.1.128.9'] });
    const [settled] = settleIn([facts]);
    expect(settled!.facts.internalIPs).toEqual(['10.1.0.9']);
    expect(settled!.problems).toMatchObject([{ reason: 'AddressOfPods', field: 'status.addresses' }]);
    expect(settled!.problems[0]!.message).toContain('10.1.128.9 is in cidrBlocks of Site a');
    const [before] = settleIn([facts], [slice([{ name: 'w', internalIPs: ['10.1.0.9', '10.1.128.9'] }])]);
    expect(before).toMatchObject({ facts: { internalIPs: ['10.1.0.9', '10.1.128.9'] }, problems: [] });
  });

  test('are no gateway’s external address either', () => {
    const [settled] = settleIn([gateway('g', { ip: ['10.1.0.9'], external: ['10.1.128.9'] })]);
    expect(settled!.facts.externalIPs).toEqual([]);
    expect(reasonsOf(settled!)).toEqual(['ExternalAddressInSite']);
  });

  test('but of a block that is wider than the nodes’ range, the block is wrong, not the nodes', () => {
    const wide = [site('a', '10.1.0.0/16', '10.0.0.0/8')];
    const [settled] = settleNodes({ nodes: [node('w', { ip: ['10.1.0.9'] })], sites: wide, pools: [], slices: [] });
    expect(settled).toMatchObject({ facts: { internalIPs: ['10.1.0.9'] }, problems: [] });
  });

  test('may be a node’s where another CNI plugin manages the Site', () => {
    const [own] = layout;
    const foreign = [{ ...own!, spec: { ...own!.spec, manageCniPlugin: false } }];
    const facts = node('w', { ip: ['10.1.128.9'] });
    const [settled] = settleNodes({ nodes: [facts], sites: foreign, pools: [], slices: [] });
    expect(settled!.facts.internalIPs).toEqual(['10.1.128.9']);
  });
});

test('whatever addresses a node states, no other loses one that it had or an InternalIP of its Site', () => {
  const anyAddress = fc.constantFrom(
    ...['10.1.0.31', '10.1.0.32', '10.2.0.1', '10.2.0.2', '10.2.0.200', '100.64.0.9', '100.65.0.9'],
    ...['192.0.2.1', '192.0.2.2', '198.51.100.9', '8.8.8.8'],
  );
  const few = fc.uniqueArray(anyAddress, { maxLength: 6 });
  const honest = [
    node('w1', { ip: ['10.1.0.31'] }),
    node('w2', { ip: ['10.2.0.1'] }),
    gateway('g1', { ip: ['10.1.0.32'], external: ['192.0.2.1'] }),
    gateway('g2', { ip: ['10.2.0.2'], annotated: '192.0.2.2' }),
  ];
  const young = node('young', { ip: ['10.2.0.200'], age: 9 });
  const pools = [listed('g1', ['192.0.2.1'])];
  const slices = [
    slice([{ name: 'w1', internalIPs: ['10.1.0.31'] }]),
    slice(
      [
        { name: 'w2', internalIPs: ['10.2.0.1'] },
        { name: 'g2', internalIPs: ['10.2.0.2'] },
      ],
      'b',
    ),
    slice([{ name: 'g1', internalIPs: ['10.1.0.32'] }]),
  ];
  fc.assert(
    fc.property(few, few, fc.boolean(), fc.boolean(), (external, answer, isGateway, isNamed) => {
      const init = { ip: ['10.1.0.9'], external, age: 1, labels: isGateway ? { gw: 'p' } : {} };
      const hostile = isNamed ? named('hostile', answer, init) : node('hostile', init);
      const settled = settle([hostile, ...honest, young], pools, slices);
      for (const facts of [...honest, young])
        expect(settled.get(facts.name)).toMatchObject({
          facts: { internalIPs: facts.internalIPs, externalIPs: facts.externalIPs },
          problems: [],
        });
      for (const text of isGateway ? settled.get('hostile')!.facts.externalIPs : [])
        expect(text).toMatch(/^(10\.1\.|192\.0\.2\.2|198\.51\.100\.9|8\.8\.8\.8)/);
    }),
    { numRuns: 300 },
  );
});
