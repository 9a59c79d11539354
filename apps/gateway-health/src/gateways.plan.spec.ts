import {
  type GatewayPool,
  type GatewayPoolNode,
  type GatewayPoolPeering,
  GROUP_VERSION,
  type Mesh,
  type SiteGatewayPoolAssignment,
  type SitePeering,
} from '@unbounded/crds';
import { nodeFacts } from '@unbounded/membership';
import { expect, test } from 'vitest';

import { type GatewayNode, type GatewayWorld, planGateways } from './gateways.plan.ts';
import { type ObservedReport, planPoolConditions } from './pool-conditions.plan.ts';
import { createReportWatch } from './report-watch.ts';
import { planReach, type ReachObjects } from './reachability.plan.ts';

const keyOf = (name: string): string => Buffer.alloc(32, name.padEnd(8, '-')).toString('base64');
const object = <K extends string, S>(kind: K, name: string, spec: S) =>
  ({ apiVersion: GROUP_VERSION, kind, metadata: { name, uid: `uid-${name}`, generation: 3 }, spec }) as const;
const pool = (name: string, spec: Partial<GatewayPool['spec']> = {}): GatewayPool =>
  object('GatewayPool', name, { nodeSelector: { gateway: name }, ...spec });
const assign = (sites: string[], gatewayPools: string[], enabled?: boolean): SiteGatewayPoolAssignment =>
  object('SiteGatewayPoolAssignment', 'x', { sites, gatewayPools, ...(enabled === undefined ? {} : { enabled }) });
const peerSites = (...sites: string[]): SitePeering => object('SitePeering', 'x', { sites, meshNodes: false });
const peerPools = (gatewayPools: string[], enabled = true): GatewayPoolPeering =>
  object('GatewayPoolPeering', 'x', { gatewayPools, enabled });

const SITES = ['a', 'b', 'c', 'd'].map((name, i) =>
  object('Site', name, {
    nodeCidrs: [`10.${i + 1}.0.0/16`],
    podCidrAssignments: [{ cidrBlocks: [`100.${65 + i}.0.0/16`] }],
  }),
);
/** An External pool with a gateway in a Site of its own. */
const reachedPool = (name: string, i: number, spec: Partial<GatewayPool['spec']> = {}): GatewayPool => ({
  ...pool(name, spec),
  status: {
    nodes: [
      {
        name: `${name}-gw`,
        siteName: SITES[i]!.metadata.name,
        wireGuardPublicKey: keyOf(`${name}-gw`),
        internalIPs: [`10.${i + 1}.0.1`],
        externalIPs: spec.type === 'Internal' ? [] : [`192.0.2.${i + 1}`],
        podCIDRs: [`100.${65 + i}.1.0/24`],
      },
    ],
  },
});
const INTERNAL = reachedPool('p', 0, { type: 'Internal' });
const MESH: Mesh = object('Mesh', 'default', {
  relay: { provider: 'external', external: { endpoint: 'relay.example.com:3478' } },
});
const joins = (parts: Partial<ReachObjects>) =>
  Object.fromEntries(
    [
      ...planReach({
        sites: SITES,
        gatewayPools: ['p', 'q', 'r'].map((name, i) => reachedPool(name, i)),
        meshes: [],
        assignments: [],
        sitePeerings: [],
        poolPeerings: [],
        ...parts,
      }),
    ].map(([name, { connectedSites, reachableSites }]) => [
      name,
      `${connectedSites.join('')}/${reachableSites.join('')}`,
    ]),
  );

test.each<[string, Parameters<typeof joins>[0], Record<string, string>]>([
  ['an assignment connects', { assignments: [assign(['a', 'b'], ['p'])] }, { p: 'ab/ab', q: '/' }],
  ['a disabled one does not', { assignments: [assign(['a'], ['p'], false)] }, { p: '/' }],
  [
    'sites peered with a served one are connected, meshed or not; what no pool serves has no route by gateways',
    { assignments: [assign(['a'], ['p'])], sitePeerings: [peerSites('a', 'b'), peerSites('c', 'd')] },
    { p: 'ab/a' },
  ],
  [
    'peering is followed one step only',
    { assignments: [assign(['a'], ['p'])], sitePeerings: [peerSites('a', 'b'), peerSites('b', 'c')] },
    { p: 'ab/a' },
  ],
  [
    'pools are followed as far as they lead',
    {
      assignments: [assign(['a'], ['p']), assign(['b'], ['q']), assign(['c'], ['r'])],
      poolPeerings: [peerPools(['p', 'q']), peerPools(['q', 'r'])],
    },
    { p: 'a/abc', q: 'b/abc', r: 'c/abc' },
  ],
  [
    'a pool without sites passes on',
    {
      assignments: [assign(['a'], ['p']), assign(['c'], ['r'])],
      poolPeerings: [peerPools(['p', 'q']), peerPools(['q', 'r'])],
    },
    { q: '/ac' },
  ],
  [
    'a disabled pool peering does not count',
    { assignments: [assign(['a'], ['p']), assign(['b'], ['q'])], poolPeerings: [peerPools(['p', 'q'], false)] },
    { p: 'a/a', q: 'b/b' },
  ],
  [
    'names that do not exist are left out',
    { assignments: [assign(['a', 'nowhere'], ['p', 'none'])], poolPeerings: [peerPools(['p', 'none'])] },
    { p: 'a/a' },
  ],
  [
    'an Internal pool that is assigned to two sites without a common network serves its own',
    { assignments: [assign(['a', 'b'], ['p'])], gatewayPools: [INTERNAL] },
    { p: 'a/a' },
  ],
  [
    'and both when they share a network',
    { assignments: [assign(['a', 'b'], ['p'])], gatewayPools: [INTERNAL], sitePeerings: [peerSites('a', 'b')] },
    { p: 'ab/ab' },
  ],
  [
    'and both with a relay',
    { assignments: [assign(['a', 'b'], ['p'])], gatewayPools: [INTERNAL], meshes: [MESH] },
    { p: 'ab/ab' },
  ],
  [
    'a pool without gateways reaches nothing and passes nothing on',
    {
      assignments: [assign(['a'], ['p']), assign(['b'], ['q']), assign(['c'], ['r'])],
      poolPeerings: [peerPools(['p', 'q']), peerPools(['q', 'r'])],
      gatewayPools: [reachedPool('p', 0), pool('q'), reachedPool('r', 2)],
    },
    { p: 'a/a', q: '/', r: 'c/c' },
  ],
])('%s', (_, parts, want) => expect(joins(parts)).toMatchObject(want));

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

const node = (
  name: string,
  labels: Record<string, string>,
  extra: Partial<GatewayNode> & { key?: boolean } = {},
): GatewayNode => ({
  facts: nodeFacts({
    metadata: {
      name,
      uid: `uid-${name}`,
      labels,
      annotations: extra.key === false ? {} : { 'net.unbounded-cloud.io/wg-pubkey': keyOf(name) },
    },
    spec: { podCIDRs: ['100.64.0.0/24', 'fd00::/64'] },
    status: {
      addresses: [
        { type: 'InternalIP', address: '10.1.0.1' },
        { type: 'ExternalIP', address: '192.0.2.1' },
      ],
    },
  }),
  isTainted: false,
  ...extra,
});
const world = (parts: Partial<GatewayWorld>): GatewayWorld => ({
  nodes: [],
  sites: [],
  pools: [],
  assignments: [],
  sitePeerings: [],
  poolPeerings: [],
  meshes: [],
  poolNodes: [],
  slices: [],
  ...parts,
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

/** What a watcher of these objects knows of them, on a clock of its own. */
const seen = (observed: ObservedReport, notForwarding = new Map<string, string>()) => ({ observed, notForwarding });
const watching = () => {
  let clockMs = 5000;
  const watch = createReportWatch(() => clockMs);
  return {
    observed: (name: string) => watch.of(name),
    see: (objects: readonly GatewayPoolNode[], afterMs = 0): void => {
      clockMs += afterMs;
      watch.observe(objects);
    },
    pass: (ms: number): void => void (clockMs += ms),
  };
};
const poolNodeOf = (name: string, lastUpdated?: string): GatewayPoolNode => ({
  ...object('GatewayPoolNode', name, { nodeName: name, gatewayPool: 'p' }),
  ...(lastUpdated === undefined ? {} : { status: { lastUpdated } }),
});

test('conditions say who is missing, who is silent, and what helps', () => {
  const nodes = [node('g', { gateway: 'p' }), node('waiting', { gateway: 'p' }, { key: false })];
  const [plan] = planGateways(world({ nodes, pools: [pool('p')] })).pools;
  const { observed, see, pass } = watching();
  see([poolNodeOf('g', '2026-01-01T00:00:17Z')]);
  const reported = poolNodeOf('g', '2026-01-01T00:00:30Z');
  see([reported], 13_000);
  expect(planPoolConditions(plan!, [reported], seen(observed))).toMatchObject([
    { type: 'GatewaysAvailable', status: 'True', observedGeneration: 3 },
    {
      type: 'NodesEligible',
      status: 'False',
      reason: 'NoPublicKey',
      message:
        'waiting has no usable WireGuard key (the node agent writes it; see the Node’s condition UnboundedNodeAccepted)',
    },
    { type: 'GatewaysReporting', status: 'True' },
    { type: 'GatewaysForwarding', status: 'True' },
    { type: 'SelectorProtected', status: 'False', reason: 'KubeletCanSetLabels' },
    { type: 'ExternalNamesResolved', status: 'True' },
  ]);
  pass(40_000);
  expect(planPoolConditions(plan!, [reported], seen(observed))[2]).toMatchObject({
    status: 'False',
    reason: 'ReportStale',
  });
});

test('a pool names its gateways that say that they do not forward, and nobody else', () => {
  const [plan] = planGateways(world({ nodes: [node('g1', { gateway: 'p' })], pools: [pool('p')] })).pools;
  const said = new Map([
    ['g1', 'HostFirewallBlocks'],
    ['worker', 'NotForwarding'],
  ]);
  expect(planPoolConditions(plan!, [], seen(watching().observed, said))[3]).toMatchObject({
    ...{ type: 'GatewaysForwarding', status: 'False', reason: 'NotForwarding' },
    message: '1 of 1 gateways do not forward: g1 (HostFirewallBlocks)',
  });
});

test.each(['1970-01-01T00:00:00Z', '2026-01-01T00:00:00Z', '2099-01-01T00:00:00Z'])(
  'a gateway whose clock shows %s is silent 40 s after its report last changed, by the clock of who watches',
  (start) => {
    const [plan] = planGateways(world({ nodes: [node('g', { gateway: 'p' })], pools: [pool('p')] })).pools;
    const { observed, see, pass } = watching();
    const report = (second: number): GatewayPoolNode =>
      poolNodeOf('g', new Date(Date.parse(start) + second * 1000).toISOString());
    const reporting = (subject: GatewayPoolNode) => planPoolConditions(plan!, [subject], seen(observed))[2];
    see([report(0)]);
    see([report(13)], 13_000);
    expect(reporting(report(13))).toMatchObject({ status: 'True' });
    see([report(13)], 39_000);
    expect(reporting(report(13))).toMatchObject({ status: 'True' });
    pass(1000);
    expect(reporting(report(13))).toMatchObject({ status: 'False', reason: 'ReportStale' });
    see([report(-3600)]); // its clock was set back: it speaks all the same
    expect(reporting(report(-3600))).toMatchObject({ status: 'True' });
  },
);

test('a new watcher neither calls a gateway silent for an old report, nor takes back what the pool said of a silent one', () => {
  const silent = { type: 'GatewaysReporting', status: 'False', reason: 'ReportStale', message: 'silent: g' } as const;
  const planned = (status?: object) => {
    const subject = { ...pool('p'), ...(status && { status }) };
    return planGateways(world({ nodes: [node('g', { gateway: 'p' })], pools: [subject] })).pools[0]!;
  };
  const { observed, see, pass } = watching();
  const old = poolNodeOf('g', '2020-01-01T00:00:00Z');
  see([old]);
  expect(planPoolConditions(planned(), [old], seen(observed))[2]).toMatchObject({ status: 'True' });
  expect(planPoolConditions(planned({ conditions: [silent] }), [old], seen(observed))[2]).toMatchObject(silent);
  pass(40_000);
  expect(planPoolConditions(planned(), [old], seen(observed))[2]).toMatchObject({
    status: 'False',
    reason: 'ReportStale',
  });
});

test('a gateway that joined a moment ago has not reported yet; after 40 s it is silent', () => {
  const [plan] = planGateways(world({ nodes: [node('g', { gateway: 'p' })], pools: [pool('p')] })).pools;
  const { observed, see, pass } = watching();
  const poolNode = poolNodeOf('g');
  const reporting = (objects: readonly GatewayPoolNode[]) => planPoolConditions(plan!, objects, seen(observed))[2];
  expect(reporting([])).toMatchObject({ status: 'Unknown', reason: 'AwaitingFirstReport' });
  see([poolNode]);
  pass(39_000);
  expect(reporting([poolNode])).toMatchObject({
    status: 'Unknown',
    reason: 'AwaitingFirstReport',
    message: 'joined less than 40 s ago and have not reported yet: g',
  });
  pass(1000);
  expect(reporting([poolNode])).toMatchObject({
    status: 'False',
    reason: 'ReportStale',
    message: 'no report for more than 40 s: g; the last report stays in effect',
  });
});

test('a deleted pool says which gateways keep it; one that is not deleted says nothing of it', () => {
  const alive = pool('p');
  const deleted = { ...alive, metadata: { ...alive.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
  const deletable = (subject: GatewayPool) => {
    const [plan] = planGateways(world({ nodes: [node('g', { gateway: 'p' })], pools: [subject] })).pools;
    return planPoolConditions(plan!, [], seen(watching().observed)).find(({ type }) => type === 'Deletable');
  };
  expect(deletable(alive)).toBeUndefined();
  expect(deletable(deleted)).toMatchObject({
    status: 'False',
    reason: 'InUse',
    message: 'members: g; the pool goes when no node has the labels of spec.nodeSelector any more',
  });
});

test('an empty pool says that no node can be a gateway', () => {
  const [plan] = planGateways(world({ pools: [pool('p')] })).pools;
  expect(planPoolConditions(plan!, [], seen(watching().observed))[0]).toMatchObject({
    status: 'False',
    reason: 'NoGateways',
  });
});

test('a pool that selects by a label that kubelets cannot set, or names its nodes, is protected', () => {
  const protection = (spec: Partial<GatewayPool['spec']>) => {
    const [plan] = planGateways(world({ pools: [pool('p', spec)] })).pools;
    return planPoolConditions(plan!, [], seen(watching().observed)).find(({ type }) => type === 'SelectorProtected');
  };
  expect(protection({ nodeSelector: { 'node-restriction.kubernetes.io/gateway-of': 'p' } })).toMatchObject({
    status: 'True',
  });
  expect(protection({ nodeNames: ['g'] })).toMatchObject({ status: 'True' });
  expect(protection({})!.message).toContain('("gateway") on its own Node');
});

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

test.each<
  [string, GatewayNode, GatewayPool, Record<string, { addresses: string[]; error?: string }>, string[] | undefined]
>([
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

test('a name that cannot be resolved is told with its node and what is used meanwhile', () => {
  const [plan] = planGateways(
    world({
      nodes: [external('g', 'gw.example.com')],
      pools: [pool('p')],
      resolvedOf: () => ({ addresses: ['198.51.100.1'], error: 'ENOTFOUND' }),
    }),
  ).pools;
  expect(
    planPoolConditions(plan!, [], seen(watching().observed)).find(({ type }) => type === 'ExternalNamesResolved'),
  ).toMatchObject({
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
  expect(
    planPoolConditions(plan!, [], seen(watching().observed)).find(({ type }) => type === 'ExternalNamesResolved'),
  ).toMatchObject({
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
  expect(
    planPoolConditions(plan, [], seen(watching().observed)).find(({ type }) => type === 'ExternalNamesResolved'),
  ).toMatchObject({
    status: 'False',
    reason: 'AddressNotUsed',
    message: expect.stringContaining('node g: external address 10.1.0.31 (nodeCidrs of Site a), 100.64.0.9') as string,
  });
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
