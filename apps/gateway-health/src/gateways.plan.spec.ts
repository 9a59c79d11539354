import { type GatewayPool, GROUP_VERSION, type SiteNodeSlice } from '@unbounded/crds';
import { describe, expect, test } from 'vitest';
import { assign, keyOf, node, object, pool, reachedPool, SITES, world } from './gateway-world.testdata.ts';
import { type GatewayNode, type GatewayWorld, planGateways } from './gateways.plan.ts';
import { createLeavingWatch } from './leaving-gateways.ts';

test('reach is that of the gateways that the plan lists, not of those that the pool’s status listed', () => {
  const planned = (subject: GatewayPool, nodes: GatewayNode[]) => {
    const [plan] = planGateways(
      world({ nodes, sites: SITES, pools: [subject], assignments: [assign(['a'], ['p'])] }),
    ).pools;
    return [plan!.gateways.length, plan!.connectedSites.join(), plan!.reachableSites.join()];
  };
  expect(planned(pool('p'), [node('g', { gateway: 'p' })])).toEqual([1, 'a', 'a']);
  expect(planned(reachedPool('p', 0), [])).toEqual([0, '', '']);
});
test.each<[string, GatewayNode, object[]]>([
  ['a new gateway gets port and taint', node('g', { gateway: 'p' }), [{ node: 'g', port: 51821, isTainted: true }]],
  [
    'one whose taint could not be written, or was taken away, gets it again',
    node('g', { gateway: 'p' }, { annotatedPort: 51821 }),
    [{ node: 'g', port: 51821, isTainted: true }],
  ],
  ['one that has both is left alone', node('g', { gateway: 'p' }, { annotatedPort: 51821, isTainted: true }), []],
  [
    'one that is no longer selected loses both',
    node('g', {}, { annotatedPort: 51821, isTainted: true }),
    [{ node: 'g', port: undefined, isTainted: false }],
  ],
  [
    'one that lost its key keeps the taint but not the port',
    node('g', { gateway: 'p' }, { annotatedPort: 51821, isTainted: true, key: false }),
    [{ node: 'g', port: undefined, isTainted: true }],
  ],
  ['one that waits for its key is not tainted by us', node('g', { gateway: 'p' }, { key: false }), []],
  ['a node that is no gateway is left alone', node('n', {}), []],
])('%s', (_, subject, want) =>
  expect(planGateways(world({ nodes: [subject], pools: [pool('p')] })).roles).toEqual(want),
);

test('a node that loses its eligibility for a while keeps its GatewayPoolNode; one that is not selected does not', () => {
  const poolNodes = ['kept', 'gone'].map((name) =>
    object('GatewayPoolNode', name, { nodeName: name, gatewayPool: 'p' }),
  );
  const nodes = [node('kept', { gateway: 'p' }, { key: false }), node('gone', {})];
  expect(
    planGateways(world({ nodes, pools: [pool('p')], poolNodes })).poolNodes.map(({ metadata }) => metadata.name),
  ).toEqual(['kept']);
});

test('what a gateway’s agent supports is told to its peers', () => {
  const known = node('new', { gateway: 'p' });
  const features = ['node-addresses'];
  const nodes = [node('old', { gateway: 'p' }), { ...known, facts: { ...known.facts, features } }];
  const { pools } = planGateways(world({ nodes, pools: [pool('p')] }));
  expect(Object.fromEntries(pools[0]!.gateways.map(({ name, features: told }) => [name, told]))).toEqual({
    old: undefined,
    new: features,
  });
});

test('a gateway’s locator is told to its peers if it is one of its Site’s block; without locators nothing is', () => {
  const known = node('g', { gateway: 'p' });
  const of = (l2LocatorBlock?: string, l2Locator?: string) => {
    const facts = l2Locator === undefined ? known.facts : { ...known.facts, l2Locator };
    const sites = [{ ...SITES[0]!, status: l2LocatorBlock === undefined ? {} : { l2LocatorBlock } }];
    return planGateways(world({ nodes: [{ ...known, facts }], pools: [pool('p')], sites })).pools[0]!.gateways[0]!;
  };
  expect(of('fd53:ab:cd::/52', 'fd53:ab:cd:1::/64')).toMatchObject({ l2Locator: 'fd53:ab:cd:1::/64' });
  for (const gateway of [of('fd53:ab:cd::/52', 'fd99::/64'), of('fd53:ab:cd::/52'), of(undefined, 'fd53:ab:cd:1::/64')])
    expect(gateway).not.toHaveProperty('l2Locator');
});

test('a gateway that fell silent stays a gateway with its port: only its report is old, not its tunnel', () => {
  const poolNode = {
    ...object('GatewayPoolNode', 'g', { nodeName: 'g', gatewayPool: 'p' }),
    status: { lastUpdated: '2020-01-01T00:00:00Z', routes: {} },
  };
  const subject = node('g', { gateway: 'p' }, { annotatedPort: 51821, isTainted: true });
  const plan = planGateways(world({ nodes: [subject], pools: [pool('p')], poolNodes: [poolNode] }));
  expect(plan.pools[0]?.gateways).toMatchObject([{ name: 'g', gatewayWireguardPort: 51821 }]);
  expect(plan.roles).toEqual([]);
  expect(plan.poolNodes.map(({ metadata }) => metadata.name)).toEqual(['g']);
});
test('a key that a slice lists is no gateway’s that claims it later', () => {
  const evil = node('evil', { gateway: 'p' });
  const stolen = { ...evil, facts: { ...evil.facts, wireGuardPublicKey: keyOf('victim') } };
  const victim = node('victim', {});
  const sites = [
    object('Site', 'a', { nodeCidrs: ['10.1.0.0/16'], podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/16'] }] }),
  ];
  const slice = {
    apiVersion: GROUP_VERSION,
    kind: 'SiteNodeSlice',
    metadata: { name: 'a-0' },
    siteName: 'a',
    sliceIndex: 0,
    nodes: [{ name: 'victim', wireGuardPublicKey: keyOf('victim') }],
  } as const;
  const plan = planGateways(world({ nodes: [stolen, victim], sites, pools: [pool('p')], slices: [slice] }));
  expect(plan.pools[0]!.gateways).toEqual([]);
  expect(plan.pools[0]!.outsiders).toEqual([{ node: 'evil', reason: 'NoPublicKey' }]);
});

describe('a gateway that its pool does not take any more', () => {
  const listed: GatewayPool = { ...pool('p'), status: { nodes: [{ name: 'g', wireGuardPublicKey: keyOf('g') }] } };
  const slice = (...names: string[]): SiteNodeSlice => ({
    ...{ apiVersion: GROUP_VERSION, kind: 'SiteNodeSlice', metadata: { name: 'a-0' } },
    ...{ siteName: 'a', sliceIndex: 0, nodeCount: names.length },
    nodes: names.map((name) => ({ name })),
  });
  const leaves = (parts: Partial<GatewayWorld>): boolean => {
    const subject = node('g', {}, { annotatedPort: 51821, isTainted: true });
    const { pools, roles } = planGateways(world({ nodes: [subject], pools: [listed], sites: SITES, ...parts }));
    const isOut = pools.every(({ gateways }) => gateways.length === 0);
    expect(roles.length > 0).toBe(isOut); // port and taint go with it, and not before
    return isOut;
  };
  test('stays until a slice lists it', () => {
    expect(leaves({})).toBe(false);
    expect(leaves({ slices: [slice('other')] })).toBe(false);
    expect(leaves({ slices: [slice('other'), slice('g')] })).toBe(true);
  });
  test('leaves at once where no slice will list it', () => {
    expect(leaves({ sites: [] })).toBe(true);
    expect(leaves({ nodes: [node('g', {}, { annotatedPort: 51821, isTainted: true, key: false })] })).toBe(true);
    expect(planGateways(world({ nodes: [], pools: [listed], sites: SITES })).pools[0]!.gateways).toEqual([]);
  });
  test('stays for 30 s at most, each time anew', () => {
    let nowMs = 0;
    const staying = createLeavingWatch(() => nowMs);
    expect(leaves({ staying })).toBe(false);
    nowMs = 29_999;
    expect(leaves({ staying })).toBe(false);
    nowMs = 30_000;
    expect(leaves({ staying })).toBe(true);
    expect(leaves({ staying, slices: [slice('g')] })).toBe(true);
    expect(leaves({ staying })).toBe(false);
  });
});
