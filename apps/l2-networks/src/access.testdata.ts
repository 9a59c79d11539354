import {
  fdbEntryKind,
  GROUP_VERSION,
  L2_ENDPOINT_FINALIZER,
  labels,
  neighborKind,
  PROTECTION_FINALIZER,
} from '@unbounded/crds';
import { fdbEntryName, neighborName } from '@unbounded/l2';
import { ourPath, type Write } from '@unbounded/testing';
import { NAMESPACE } from '@unbounded/testing/chart';
import type { Allowed, Refused } from '@unbounded/testing/write-rows';

import { SHOP } from './test-cluster.testdata.ts';

/** What can be done with the token of the controller, and with that of the agent of node n1: what is taken, and what is refused. */

const RBAC = 'cannot';
const typed = { apiVersion: GROUP_VERSION } as const;
const merge = (path: string, body: object): Write => ({ verb: 'merge', path, body });
const create = (path: string, body: object): Write => ({ verb: 'create', path, body });
const remove = (path: string): Write => ({ verb: 'delete', path });
const finalizers = (...names: string[]) => ({ metadata: { finalizers: names } });

export const NETWORK = {
  ...{ ...typed, kind: 'Network', metadata: { name: 'lan' } },
  spec: { prefixes: ['192.0.2.0/24'], namespaceSelector: {} },
};
/** By its selectors: takes pods of SHOP where none of the requirements is wrong, and trusts none. */
export const SELECTIVE = {
  ...{ ...typed, kind: 'Network', metadata: { name: 'selective' } },
  spec: {
    prefixes: ['198.51.100.0/24'],
    namespaceSelector: {
      matchLabels: { team: 'shop' },
      matchExpressions: [
        { key: 'team', operator: 'In', values: ['shop', 'web'] },
        { key: 'team', operator: 'NotIn', values: ['web'] },
        { key: 'none', operator: 'NotIn', values: ['a'] },
        { key: 'team', operator: 'Exists' },
        { key: 'none', operator: 'DoesNotExist' },
      ],
    },
  },
};
const selecting = (name: string, spec: object) => ({
  ...SELECTIVE,
  metadata: { name },
  spec: { ...SELECTIVE.spec, ...spec },
});
/** Each is one way not to select SHOP, whose labels are team: shop. */
export const CLOSED = [
  selecting('closed-labels', { namespaceSelector: { matchLabels: { team: 'web' } } }),
  selecting('closed-missing', { namespaceSelector: { matchLabels: { none: '' } } }),
  ...[
    { key: 'team', operator: 'In', values: ['web'] },
    { key: 'none', operator: 'In', values: ['a'] },
    { key: 'team', operator: 'NotIn', values: ['shop'] },
    { key: 'none', operator: 'Exists' },
    { key: 'team', operator: 'DoesNotExist' },
  ].map((requirement, index) =>
    selecting(`closed-${index}`, { namespaceSelector: { matchExpressions: [requirement] } }),
  ),
];
export const TRUSTING = selecting('trusting', {
  namespaceSelector: {},
  trustedNamespaceSelector: { matchLabels: { team: 'shop' } },
});
export const WARY = selecting('wary', {
  namespaceSelector: {},
  trustedNamespaceSelector: { matchLabels: { team: 'x' } },
});

export const networks = (name = '', subresource = '') => ourPath('networks', name, subresource);
export const endpoints = (name = '') => ourPath(`namespaces/${SHOP}/networkendpoints`, name);

/** Endpoint eN on a node; those that stand have their finalizer. */
export const endpointObject = (number: number, node: string, metadata: object = {}) => ({
  ...{ ...typed, kind: 'NetworkEndpoint' },
  metadata: { name: `e${number}`, namespace: SHOP, finalizers: [L2_ENDPOINT_FINALIZER], ...metadata },
  spec: {
    ...{ network: 'lan', node, pod: `p${number}`, interface: 'net1', mac: `02:00:00:00:00:0${number}` },
    addresses: [`192.0.2.${number}`],
  },
});

/** Endpoint eN of node n1 in that Network. */
const endpointIn = (number: number, network: string, more: object = {}) => {
  const { spec, ...rest } = endpointObject(number, 'n1', { name: `p${number}.net1`, finalizers: [] });
  return create(endpoints(), { ...rest, spec: { ...spec, network, ...more } });
};
const TRUSTED = { isTrusted: true };
export const mayJoin: readonly Allowed[] = [
  ['a Network whose selector selects the namespace', endpointIn(5, 'selective')],
  ['one that trusts the namespace, as trusted', endpointIn(6, 'trusting', TRUSTED)],
  ['one that trusts others, as not trusted', endpointIn(7, 'wary')],
  ['a Network that is not there yet', endpointIn(8, 'none')],
];
export const mayNotJoin: readonly Refused[] = [
  ...CLOSED.map(({ metadata: { name } }): Refused => [
    `Network ${name}`,
    endpointIn(9, name),
    `Network ${name} takes no pods of namespace ${SHOP}: its namespaceSelector does not select it`,
  ]),
  ['one that trusts nobody, as trusted', endpointIn(9, 'selective', TRUSTED), 'Network selective trusts no pods of'],
  ['one that trusts others, as trusted', endpointIn(9, 'wary', TRUSTED), 'Network wary trusts no pods of namespace'],
];

const labelled = (name: string, metadata: object = {}) => ({ name, labels: { [labels.network]: 'lan' }, ...metadata });
const fdbName = (number: number): string => fdbEntryName('lan', `02:00:00:00:00:0${number}`);
export const fdbObject = (number: number, source = 'static', metadata: object = {}) => ({
  ...{ ...typed, kind: fdbEntryKind.kind, metadata: labelled(fdbName(number), metadata) },
  spec: { network: 'lan', mac: `02:00:00:00:00:0${number}`, source },
});
const neighborObject = (number: number, metadata: object = {}) => ({
  ...{ ...typed, kind: neighborKind.kind, metadata: labelled(neighborName('lan', `192.0.2.${number}`), metadata) },
  spec: { network: 'lan', ip: `192.0.2.${number}`, source: 'static' },
});
export const fdb = (number: number, subresource = '') => ourPath('fdbentries', fdbName(number), subresource);
export const fdbEntries = ourPath('fdbentries');
const neighbors = ourPath('neighbors');
export const boundTo = (managingNode: string, endpoint = 'e1') => ({
  status: { endpoint: `${SHOP}/${endpoint}`, managingNode },
});

const lease = (name: string) =>
  create(`/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: NAMESPACE },
  });

/** There are: Network lan; endpoints e1 on n1, e2 on n2; entries 1 of n1, 2 (static) and 3 (learned) of n2, 4 of nobody yet. */

export const controllerMay: readonly Allowed[] = [
  ['the status of a Network', merge(networks('lan', 'status'), { status: { number: 1 } })],
  ['the finalizer of a Network', merge(networks('lan'), finalizers(PROTECTION_FINALIZER))],
  ['an endpoint without its finalizer', merge(endpoints('e1'), finalizers())],
  ['the end of an endpoint', remove(endpoints('e1'))],
  ['the end of an entry', remove(fdb(1))],
  ['the end of an entry that nobody manages', remove(fdb(4))],
];

/** By roles of the chart. */
export const controllerMayNotByRole: readonly Refused[] = [
  ['a Network', create(networks(), { ...NETWORK, metadata: { name: 'other' } }), RBAC],
  ['the end of a Network', remove(networks('lan')), RBAC],
  ['an endpoint', create(endpoints(), endpointObject(7, 'n1')), RBAC],
  ['an entry', create(fdbEntries, fdbObject(7)), RBAC],
  ['what a node says of an entry', merge(fdb(1, 'status'), boundTo('n1')), RBAC],
  ['a Pod', remove(`/api/v1/namespaces/${SHOP}/pods/p1`), RBAC],
  ['a Node', remove('/api/v1/nodes/n1'), RBAC],
];

/** Also where a role of the cluster would let it. */
export const controllerMayNot: readonly Refused[] = [
  ['the spec of a Network', merge(networks('lan'), { spec: { mtu: 1280 } }), 'of a Network, not its spec'],
  ['another finalizer of a Network', merge(networks('lan'), finalizers('a.b/c')), 'of a Network, no other'],
  ['a label of an endpoint', merge(endpoints('e1'), { metadata: { labels: { a: 'b' } } }), 'not change its labels'],
  ['another finalizer of an endpoint', merge(endpoints('e1'), finalizers(L2_ENDPOINT_FINALIZER, 'a.b/c')), 'no other'],
  ['an endpoint', create(endpoints(), endpointObject(7, 'n1')), 'not write its spec'],
  ['an entry', create(fdbEntries, fdbObject(7)), 'l2-networks may only delete fdbentries'],
  ['what a node says of an entry', merge(fdb(1, 'status'), boundTo('n1')), 'that is for the agents of their nodes'],
  ['the Lease of another program', lease('kube-scheduler'), 'may write only the Lease'],
];

export const agentMay: readonly Allowed[] = [
  [
    'an endpoint of its node',
    create(endpoints(), endpointObject(7, 'n1', { name: 'p7.net1', labels: { [labels.network]: 'lan' } })),
  ],
  ['its endpoint without the finalizer', merge(endpoints('e1'), finalizers())],
  ['the end of its endpoint', remove(endpoints('e1'))],
  ['an entry', create(fdbEntries, fdbObject(7))],
  ['a neighbor', create(neighbors, neighborObject(7))],
  ['its node in an entry that it manages', merge(fdb(1, 'status'), boundTo('n1'))],
  ['its node in an entry that nobody manages', merge(fdb(4, 'status'), boundTo('n1'))],
  ['its node in a learned entry of another', merge(fdb(3, 'status'), boundTo('n1'))],
  ['the end of its entry', remove(fdb(1))],
  ['the end of an entry that nobody manages', remove(fdb(4))],
];

const OWN = 'may write NetworkEndpoints only of its own node';
export const agentMayNot: readonly Refused[] = [
  ['an endpoint of another node', create(endpoints(), endpointObject(7, 'n2')), `${OWN}, not e7 of node n2`],
  ['the finalizer of another node’s endpoint', merge(endpoints('e2'), finalizers()), OWN],
  ['the end of another node’s endpoint', remove(endpoints('e2')), OWN],
  [
    'an endpoint with the label of another network',
    create(endpoints(), endpointObject(7, 'n1', { labels: { [labels.network]: 'other' } })),
    'only with its spec.network lan',
  ],
  [
    'an endpoint with another label',
    create(endpoints(), endpointObject(7, 'n1', { labels: { a: 'b' } })),
    'may label a NetworkEndpoint only with',
  ],
  ['an endpoint with another finalizer', merge(endpoints('e1'), finalizers('a.b/c')), 'of finalizers only'],
  [
    'an endpoint under the name of another pod’s',
    create(endpoints(), endpointObject(7, 'n1', { name: 'p8.net1' })),
    'only by its pod and interface, p7.net1, not p8.net1',
  ],
  ['another node into its entry', merge(fdb(1, 'status'), boundTo('n2')), 'only its own node as status.managingNode'],
  ['another node into a new entry', merge(fdb(4, 'status'), boundTo('n2')), 'only its own node as status.managingNode'],
  ['its node into a static entry of another', merge(fdb(2, 'status'), boundTo('n1')), 'which is managed by node n2'],
  ['the end of another node’s entry', remove(fdb(2)), 'which is managed by node n2'],
  ['the end of another node’s learned entry', remove(fdb(3)), 'which is managed by node n2'],
  [
    'an entry without the label',
    create(fdbEntries, fdbObject(7, 'static', { labels: {} })),
    'must be its spec.network',
  ],
  [
    'a neighbor with the label of another network',
    create(neighbors, neighborObject(7, { labels: { [labels.network]: 'other' } })),
    'must be its spec.network lan',
  ],
  [
    'another label into its entry',
    merge(fdb(1), { metadata: { labels: { [labels.network]: 'other' } } }),
    'must be its spec.network lan',
  ],
  [
    'an entry with annotations',
    create(fdbEntries, fdbObject(7, 'static', { annotations: { a: 'b' } })),
    'without further labels, annotations',
  ],
  ['a finalizer into its entry', merge(fdb(1), finalizers('a.b/c')), 'only the status of an entry'],
];
