import { GROUP_VERSION } from '@unbounded/crds';
import { ourPath, type Write } from '@unbounded/testing';
import { NAMESPACE } from '@unbounded/testing/chart';
import type { Allowed, Refused } from '@unbounded/testing/write-rows';

import { egressPool, SHOP, staticEgress } from './egress-cluster.testdata.ts';

/** What can be done with the token of the controller, and with that of the agent of node n1: what is taken, and what is refused. */

const RBAC = 'cannot';
export const RULE = staticEgress('partner', { podSelector: {}, egressip: '192.0.2.200' });
export const POOL = egressPool('public', { blocks: ['192.0.2.208/28'] });
export const sliceObject = (node: string, metadata: object = {}, spec: object = {}) => ({
  apiVersion: GROUP_VERSION,
  kind: 'EgressNodeSlice',
  metadata: { name: `${node}-0`, ...metadata },
  spec: { nodeName: node, nodeUID: `uid-${node}`, index: 0, ...spec },
});

export const inShop = (plural: string, name = '', subresource = ''): string =>
  ourPath(`namespaces/${SHOP}/${plural}`, name, subresource);
const slices = (name = '', subresource = '') => ourPath('egressnodeslices', name, subresource);
const merge = (path: string, body: object): Write => ({ verb: 'merge', path, body });
const create = (path: string, body: object): Write => ({ verb: 'create', path, body });
const remove = (path: string): Write => ({ verb: 'delete', path });
const status = (fields: object) => ({ status: fields });
const named = (name: string) => ({ metadata: { name } });

const event = (namespace: string, regarding: object, by = 'unbounded/static-egress') =>
  create(`/apis/events.k8s.io/v1/namespaces/${namespace}/events`, {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: 'e', namespace },
    eventTime: '2026-01-01T00:00:00.000000Z',
    reportingController: by,
    reportingInstance: 'i',
    action: 'A',
    reason: 'R',
    type: 'Normal',
    note: 'n',
    regarding,
  });
const ofShop = (apiVersion: string, kind: string) => ({ apiVersion, kind, name: 'x', namespace: SHOP });
const lease = (name: string) =>
  create(`/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: NAMESPACE },
  });

export const controllerMay: readonly Allowed[] = [
  ['the status of a rule', merge(inShop('staticegressips', 'partner', 'status'), status({ pods: 1 }))],
  ['the status of a pool', merge(ourPath('egressippools', 'public', 'status'), status({ assigned: 1 }))],
  ['a slice', create(slices(), sliceObject('n9'))],
  ['the end of a slice', remove(slices('n1-0'))],
  ['an Event about a pod', event(SHOP, ofShop('v1', 'Pod'))],
  ['an Event about a rule', event(SHOP, ofShop(GROUP_VERSION, 'StaticEgressIP'))],
  ['an Event about a slice', event('default', { apiVersion: GROUP_VERSION, kind: 'EgressNodeSlice', name: 'n1-0' })],
];

/** By roles of the chart. */
export const controllerMayNotByRole: readonly Refused[] = [
  ['the spec of a rule', merge(inShop('staticegressips', 'partner'), { spec: RULE.spec }), RBAC],
  ['a pool', create(ourPath('egressippools'), { ...POOL, ...named('mine') }), RBAC],
  ['what an agent reports', merge(slices('n1-0', 'status'), status({ released: [] })), RBAC],
  ['a pod', remove(`/api/v1/namespaces/${SHOP}/pods/x`), RBAC],
  ['a Node', merge('/api/v1/nodes/n1', { metadata: { labels: { a: 'b' } } }), RBAC],
  ['a Site', create(ourPath('sites'), { apiVersion: GROUP_VERSION, kind: 'Site', ...named('a'), spec: {} }), RBAC],
];

/** Also where a role of the cluster would let it. */
export const controllerMayNot: readonly Refused[] = [
  [
    'the spec of a rule',
    merge(inShop('staticegressips', 'partner'), { spec: { rules: [{ podSelector: {}, pool: 'public' }] } }),
    'static-egress may write only the status of staticegressips, not what people wrote in partner',
  ],
  ['the end of a rule', remove(inShop('staticegressips', 'partner')), 'only the status of staticegressips'],
  [
    'a label of a pool',
    merge(ourPath('egressippools', 'public'), { metadata: { labels: { a: 'b' } } }),
    'only the status of egressippools',
  ],
  ['what an agent reports', merge(slices('n1-0', 'status'), status({ released: [] })), 'only the spec of'],
  [
    'a slice under the name of another node',
    create(slices(), sliceObject('n9', { name: 'n1-7' })),
    'may write slice 0 of node n9 only under the name n9-0, not n1-7',
  ],
  ['another node into a slice', merge(slices('n1-0'), { spec: { nodeName: 'n2' } }), 'only under the name n2-0'],
  ['a slice with a finalizer', create(slices(), sliceObject('n9', { finalizers: ['example.com/a'] })), 'finalizers'],
  ['a slice with annotations', create(slices(), sliceObject('n9', { annotations: { a: 'b' } })), 'without labels'],
  ['an Event about a Secret', event(SHOP, ofShop('v1', 'Secret')), 'only about Pods and kinds of'],
  ['an Event of somebody else', event(SHOP, ofShop('v1', 'Pod'), 'kubelet'), 'only Events of the reportingController'],
  ['the Lease of another program', lease('kube-scheduler'), 'may write only the Lease'],
];

export const agentMay: readonly Allowed[] = [
  ['the heartbeat of its node', merge(slices('n1-0', 'status'), status({ heartbeat: 1 }))],
  ['a released address', merge(slices('n1-0', 'status'), status({ released: [{ address: '192.0.2.200', epoch: 1 }] }))],
];

export const agentMayNot: readonly Refused[] = [
  [
    'a released address of another node',
    merge(slices('n2-0', 'status'), status({ released: [{ address: '192.0.2.200', epoch: 1 }] })),
    'the node agent of n1 may write the status only of EgressNodeSlices of its own node, not of n2-0 of node n2',
  ],
  ['addresses that it owns', merge(slices('n1-0'), { spec: { owned: [] } }), 'not n1-0 itself: static-egress writes'],
  ['a slice', create(slices(), sliceObject('n1', { name: 'n1-1' })), 'may write only the status'],
  ['the end of a slice', remove(slices('n1-0')), 'not n1-0 itself'],
];
