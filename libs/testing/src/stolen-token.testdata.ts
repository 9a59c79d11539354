import { annotations, GATEWAY_TAINT, GROUP_VERSION, labels, PROTECTION_FINALIZER } from '@unbounded/crds';

import { NAMESPACE } from './chart.ts';
import { nodeObject, poolObject, siteObject } from './objects.ts';
import { nodePath, ourPath, type Write } from './write.ts';

/**
 * What somebody can do with the token of one of our programs: the table says what each may write and what it may not.
 * gateway-health's right to run a relay has a table of its own, beside its plan; how long the writes may be is in
 * small-writes.testdata.ts.
 */

export const CONTROLLERS = ['cidr-allocator', 'site-membership', 'gateway-health'] as const;
/** Its token says that it is on the Node `mine`. */
export const AGENT = 'node-dataplane';
export type Who = (typeof CONTROLLERS)[number] | typeof AGENT;
export type Row = readonly [who: Who, what: string, write: Write, refusal: string];
export type Allowed = readonly [who: Who, what: string, write: Write];

export const RBAC = 'cannot';
/** The same; of a server-side apply that would create Kubernetes 1.31 does not say what. */
const REFUSED = 'is forbidden';
/** What the API server lets nobody do. */
export const FIXED = 'field is immutable';
export const ONCE = 'may not change podCIDR except from "" to valid';
export const merge = (path: string, body: object): Write => ({ verb: 'merge', path, body });
export const create = (path: string, body: object): Write => ({ verb: 'create', path, body });
const remove = (path: string): Write => ({ verb: 'delete', path });
export const node = (body: object, name = 'mine', subresource = ''): Write => merge(nodePath(name, subresource), body);
export const annotate = (name: string, value: string | null = '51821') => ({
  metadata: { annotations: { [name]: value } },
});
const finalizers = (...names: string[]) => ({ metadata: { finalizers: names } });
const podCidrs = { spec: { podCIDR: '10.0.0.0/24', podCIDRs: ['10.0.0.0/24'] } };
const site = { metadata: { labels: { [labels.site]: 'a' } } };
/** The first is Kubernetes' own, of Nodes that are not ready yet. */
const taint = { spec: { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }, GATEWAY_TAINT] } };
const condition = (type: string) => ({ status: { conditions: [{ type, status: 'False', reason: 'R', message: '' }] } });

export const leases = (namespace: string = NAMESPACE): string =>
  `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
export const lease = (name: string, namespace: string = NAMESPACE): Write =>
  create(leases(namespace), { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name, namespace } });

export const regarding = {
  node: (name: string) => ({ apiVersion: 'v1', kind: 'Node', name }),
  ours: (kind: string, name = 'x') => ({ apiVersion: GROUP_VERSION, kind, name }),
};
export const eventObject = (by: string, about: object, more: object = {}) => ({
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name: by === AGENT ? 'mine.0af' : `e-${by}`, namespace: 'default' },
  eventTime: '2026-01-01T00:00:00.000000Z',
  reportingController: `unbounded/${by}`,
  reportingInstance: 'i',
  action: 'A',
  reason: 'R',
  type: 'Normal',
  note: 'n',
  regarding: about,
  ...more,
});
export const events = (namespace = 'default'): string => `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
export const event = (by: string, about: object, more: object = {}): Write =>
  create(events(), eventObject(by, about, more));
const eventIn = (namespace: string, by: string, about: object): Write =>
  create(events(namespace), eventObject(by, about, { metadata: { name: 'e', namespace } }));
const series = { series: { count: 2, lastObservedTime: '2026-01-01T00:00:01.000000Z' } };

export const poolNode = (name: string, more: object = {}) => ({
  apiVersion: GROUP_VERSION,
  kind: 'GatewayPoolNode',
  metadata: { name },
  spec: { nodeName: name, gatewayPool: 'p' },
  ...more,
});
const owned = (name: string, ...ownerReferences: object[]) => ({ metadata: { name, ownerReferences } });
export const owner = (kind: string, name: string, apiVersion: string = GROUP_VERSION) => ({
  apiVersion,
  kind,
  name,
  uid: 'u',
});
export const slice = (more: object = {}) => ({
  apiVersion: GROUP_VERSION,
  kind: 'SiteNodeSlice',
  metadata: { name: 'a-0' },
  siteName: 'a',
  sliceIndex: 0,
  nodeCount: 0,
  nodes: [],
  ...more,
});

export const allowed: readonly Allowed[] = [
  ['cidr-allocator', 'pod CIDRs of a Node without any', node(podCidrs)],
  ['cidr-allocator', 'the locator of a Node', node(annotate(annotations.l2Locator, 'fd53:ab:cd:1::/64'))],
  ['cidr-allocator', 'the status of a Site', merge(ourPath('sites', 'a', 'status'), { status: { nodeCount: 1 } })],
  ['site-membership', 'the site of a Node', node(site)],
  ['site-membership', 'its condition of a Node', node(condition('UnboundedNodeAccepted'), 'mine', 'status')],
  [
    'site-membership',
    'the finalizer of a Site',
    merge(ourPath('sites', 'a'), finalizers(PROTECTION_FINALIZER, 'example.com/kept')),
  ],
  ['site-membership', 'the status of a Site', merge(ourPath('sites', 'a', 'status'), { status: { nodeCount: 1 } })],
  ['site-membership', 'a slice of a Site', create(ourPath('sitenodeslices'), slice(owned('a-0', owner('Site', 'a'))))],
  ['gateway-health', 'taint and port of a gateway', node({ ...taint, ...annotate(annotations.wireGuardPort) })],
  ['gateway-health', 'a Node that is no gateway any more', node(annotate(annotations.wireGuardPort, null))],
  [
    'gateway-health',
    'the finalizer of a GatewayPool',
    merge(ourPath('gatewaypools', 'p'), finalizers(PROTECTION_FINALIZER, 'example.com/kept')),
  ],
  [
    'gateway-health',
    'the status of a GatewayPool',
    merge(ourPath('gatewaypools', 'p', 'status'), { status: { nodeCount: 1 } }),
  ],
  [
    'gateway-health',
    'a GatewayPoolNode',
    create(
      ourPath('gatewaypoolnodes'),
      poolNode('other', owned('other', owner('Node', 'other', 'v1'), owner('GatewayPool', 'p'))),
    ),
  ],
  ['gateway-health', 'an Event about a Mesh', event('gateway-health', regarding.ours('Mesh'))],
  ['node-dataplane', 'its key', node(annotate(annotations.wireGuardPublicKey, `${'A'.repeat(43)}=`))],
  ['node-dataplane', 'its conditions', node(condition('NetworkUnavailable'), 'mine', 'status')],
  [
    'node-dataplane',
    'the status of its GatewayPoolNode',
    merge(ourPath('gatewaypoolnodes', 'mine', 'status'), { status: { lastUpdated: '2026-01-01T00:00:00Z' } }),
  ],
  ['node-dataplane', 'an Event about its Node', event('node-dataplane', regarding.node('mine'))],
  ['node-dataplane', 'another of the same', merge(`${events()}/of-mine`, series)],
  ...CONTROLLERS.flatMap((who): Allowed[] => [
    [who, 'its Lease', lease(who)],
    [who, 'an Event about a Node', event(who, regarding.node('mine'))],
    [who, 'an Event about a Site', event(who, regarding.ours('Site'))],
    [who, 'another of the same', merge(`${events()}/of-${who}`, series)],
  ]),
];

const onlyFinalizer = (who: Who, kind: string): string =>
  `${who} may change only the finalizer ${PROTECTION_FINALIZER} of a ${kind}`;

const protectors: readonly Row[] = (
  [
    ['site-membership', 'Site', 'sites', siteObject('a'), { tunnelProtocol: 'None' }],
    ['gateway-health', 'GatewayPool', 'gatewaypools', poolObject('p'), { routedCidrs: ['198.51.100.0/24'] }],
  ] as const
).flatMap(([who, kind, plural, object, spec]): Row[] => {
  const { name } = object.metadata;
  const another = { ...object, metadata: { name: 'new' } };
  const path = ourPath(plural, name);
  const refusal = onlyFinalizer(who, kind);
  return [
    [who, `the spec of a ${kind}`, merge(path, { spec }), `${refusal}, not its spec`],
    [
      who,
      `the spec of a ${kind} with its finalizer`,
      merge(path, { ...finalizers(PROTECTION_FINALIZER, 'example.com/kept'), spec }),
      refusal,
    ],
    [
      who,
      `the spec of a ${kind} by server-side apply`,
      { verb: 'apply', path, body: { apiVersion: GROUP_VERSION, kind, metadata: { name }, spec } },
      refusal,
    ],
    [who, `a label of a ${kind}`, merge(path, { metadata: { labels: { a: 'b' } } }), refusal],
    [who, `an annotation of a ${kind}`, merge(path, annotate('a', 'b')), refusal],
    [
      who,
      `an owner of a ${kind}`,
      merge(path, { metadata: { ownerReferences: [owner('Node', 'mine', 'v1')] } }),
      refusal,
    ],
    [
      who,
      `another finalizer of a ${kind}`,
      merge(path, finalizers('example.com/kept', 'example.com/new')),
      `${refusal}, no other`,
    ],
    [
      who,
      `a ${kind} whose other finalizers go`,
      merge(path, { metadata: { finalizers: null } }),
      `${refusal}, no other`,
    ],
    [who, `a new ${kind}`, create(ourPath(plural), another), RBAC],
    [
      who,
      `a new ${kind} by server-side apply`,
      { verb: 'apply', path: ourPath(plural, 'new'), body: another },
      REFUSED,
    ],
    [who, `a ${kind} that goes`, remove(path), RBAC],
  ];
});

const leasesOfOthers = (who: Who): Row[] => [
  [
    who,
    'a Lease of another name',
    lease('kube-scheduler'),
    who === AGENT ? RBAC : `${who} may write only the Lease ${NAMESPACE}/${who}`,
  ],
  [who, 'a Lease in another namespace', lease(who, 'kube-system'), RBAC],
  [who, 'the Lease of another', merge(`${leases()}/taken`, { spec: { holderIdentity: who } }), RBAC],
];

const eventsOfOthers = (who: Who): Row[] => [
  [who, 'an Event in another namespace', eventIn('kube-system', who, regarding.node('mine')), RBAC],
  [who, 'an Event in its own namespace', eventIn(NAMESPACE, who, regarding.node('mine')), RBAC],
  [
    who,
    'an Event in the name of another',
    event('kubelet', regarding.node('mine')),
    `${who} may write only Events of the reportingController unbounded/${who}`,
  ],
  [
    who,
    'an Event about a Pod',
    event(who, { apiVersion: 'v1', kind: 'Pod', name: 'a', namespace: 'default' }),
    'may write Events only about',
  ],
  [
    who,
    'an Event about a kind of the same name',
    event(who, { apiVersion: 'example.com/v1', kind: 'Node', name: 'mine' }),
    'may write Events only about',
  ],
  [
    who,
    'an Event about a second object',
    event(who, regarding.node('mine'), { related: regarding.node('mine') }),
    'only about one object',
  ],
  [who, 'the Event of another', merge(`${events()}/of-kubelet`, series), `${who} may write only Events`],
  [
    who,
    'what an Event says',
    merge(`${events()}/of-${who === AGENT ? 'mine' : who}`, { note: 'all is well', ...series }),
    FIXED,
  ],
];

const otherKinds = (who: Who): Row[] => [
  [
    who,
    'a Secret',
    create(`/api/v1/namespaces/${NAMESPACE}/secrets`, { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' } }),
    RBAC,
  ],
  [
    who,
    'a Pod',
    create(`/api/v1/namespaces/${NAMESPACE}/pods`, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'a' },
      spec: { containers: [{ name: 'a', image: 'a' }] },
    }),
    RBAC,
  ],
  [
    who,
    'a role',
    create('/apis/rbac.authorization.k8s.io/v1/clusterroles', {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'a' },
    }),
    RBAC,
  ],
  [
    who,
    'a policy that goes',
    remove(`/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/unbounded-${who}-events`),
    RBAC,
  ],
  [who, 'a Node that goes', remove(nodePath('mine')), RBAC],
  [who, 'a new Node', create('/api/v1/nodes', nodeObject({ name: 'new' })), RBAC],
  [
    who,
    'readiness of a Node',
    node(condition('Ready'), 'mine', 'status'),
    who === AGENT || who === 'site-membership' ? 'may change only the condition' : RBAC,
  ],
  [
    who,
    'a token of another',
    create(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts/node-keeper/token`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences: [] },
    }),
    RBAC,
  ],
];

export const everyone: readonly Who[] = [...CONTROLLERS, AGENT];
const everybody = everyone.flatMap((who): Row[] => [
  ...leasesOfOthers(who),
  ...eventsOfOthers(who),
  ...otherKinds(who),
]);

export const forbidden: readonly Row[] = [
  ...protectors,
  ...everybody,
  ['cidr-allocator', 'pod CIDRs of a Node that has some', node(podCidrs, 'settled'), ONCE],
  ['cidr-allocator', 'pod CIDRs away from a Node', node({ spec: { podCIDR: null, podCIDRs: null } }, 'settled'), ONCE],
  ['cidr-allocator', 'the site of a Node', node(site), 'cidr-allocator may change only'],
  ['cidr-allocator', 'a Site', merge(ourPath('sites', 'a'), finalizers()), RBAC],
  [
    'site-membership',
    'another label of a Node',
    node({ metadata: { labels: { zone: 'y' } } }),
    'site-membership may change only',
  ],
  [
    'site-membership',
    'whether pods come to a Node',
    node({ spec: { unschedulable: true } }),
    'site-membership may change only',
  ],
  [
    'site-membership',
    'a slice of nobody’s Site',
    create(ourPath('sitenodeslices'), slice(owned('a-0', owner('Site', 'b')))),
    'slices that nothing but their own Site owns',
  ],
  [
    'site-membership',
    'a slice that stays',
    create(ourPath('sitenodeslices'), slice({ metadata: { name: 'a-0', finalizers: ['example.com/a'] } })),
    'without finalizers',
  ],
  ['site-membership', 'a GatewayPool', merge(ourPath('gatewaypools', 'p'), finalizers()), RBAC],
  ['gateway-health', 'a port that is none', node(annotate(annotations.wireGuardPort, 'x')), 'only a UDP port'],
  [
    'gateway-health',
    'the key of a Node',
    node(annotate(annotations.wireGuardPublicKey)),
    'gateway-health may change only',
  ],
  [
    'gateway-health',
    'a GatewayPoolNode of another Node',
    create(ourPath('gatewaypoolnodes'), poolNode('other', { spec: { nodeName: 'mine', gatewayPool: 'p' } })),
    'of the name of their Node',
  ],
  [
    'gateway-health',
    'a GatewayPoolNode that stays',
    create(
      ourPath('gatewaypoolnodes'),
      poolNode('other', { metadata: { name: 'other', finalizers: ['example.com/a'] } }),
    ),
    'without finalizers',
  ],
  ['gateway-health', 'a Mesh', merge(ourPath('meshes', 'default'), { spec: {} }), RBAC],
  [
    'node-dataplane',
    'another Node',
    node(annotate(annotations.wireGuardPublicKey), 'other'),
    'may change only its own Node, not other',
  ],
  [
    'node-dataplane',
    'an Event about another Node',
    event('node-dataplane', regarding.node('other')),
    'the node agent of mine may write Events only about its own Node, not about Node other',
  ],
  ['node-dataplane', 'an Event about a Site', event('node-dataplane', regarding.ours('Site')), 'not about Site x'],
  [
    'node-dataplane',
    'the Event of another Node',
    merge(`${events()}/of-other`, series),
    'the node agent of mine may write Events only',
  ],
  ['node-dataplane', 'a GatewayPoolNode', create(ourPath('gatewaypoolnodes'), poolNode('other')), RBAC],
  [
    'node-dataplane',
    'the pool of its GatewayPoolNode',
    merge(ourPath('gatewaypoolnodes', 'mine'), { spec: { gatewayPool: 'q' } }),
    RBAC,
  ],
  [
    'node-dataplane',
    'the status of another’s GatewayPoolNode',
    merge(ourPath('gatewaypoolnodes', 'else', 'status'), { status: { lastUpdated: '2026-01-01T00:00:00Z' } }),
    'may write only its own GatewayPoolNode',
  ],
];
