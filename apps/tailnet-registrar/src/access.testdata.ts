import { podConditions, GROUP_VERSION, tailnetDeviceKind, TAILNET_DEVICE_FINALIZER } from '@unbounded/crds';
import { ourPath, type Write } from '@unbounded/testing';
import { NAMESPACE } from '@unbounded/testing/chart';
import type { Allowed, Refused } from '@unbounded/testing/write-rows';

import { SECRET, SHOP } from './test-cluster.testdata.ts';

/**
 * What can be done with the token of the registrar, with that of the tailnet agent of node n1, and with that of an uninstallation: what is
 * taken, and what is refused.
 */

const RBAC = 'cannot';
const merge = (path: string, body: object): Write => ({ verb: 'merge', path, body });
const create = (path: string, body: object): Write => ({ verb: 'create', path, body });
const remove = (path: string): Write => ({ verb: 'delete', path });
const finalizers = (...names: string[]) => ({ metadata: { finalizers: names } });
const status = (fields: object) => ({ status: fields });

export const records = (name = '', subresource = '') => ourPath(`namespaces/${SHOP}/tailnetdevices`, name, subresource);
const KEY = { publicKey: `${'A'.repeat(43)}=` };
const SEALED = { sealedKey: { ...KEY, sealed: 'AAAA', expiresAt: '2026-01-01T00:00:00Z' } };
export const CONDITION = {
  ...{ type: 'Registered', status: 'True', reason: 'Registered', message: 'x' },
  lastTransitionTime: '2026-01-01T00:00:00Z',
};

/** Record pN of Pod pN on node nN. */
export const recordObject = (number: number, { metadata = {}, spec = {} }: Record<string, object> = {}) => ({
  ...{ apiVersion: GROUP_VERSION, kind: tailnetDeviceKind.kind },
  metadata: {
    ...{ name: `p${number}`, namespace: SHOP, finalizers: [TAILNET_DEVICE_FINALIZER] },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: `p${number}`, uid: `u${number}` }],
    ...metadata,
  },
  spec: {
    ...{ node: `n${number}`, pod: `p${number}`, podUID: `u${number}`, hostName: `k8s-shop-p${number}` },
    ...{ tags: ['tag:k8s-pod'], controlURL: 'https://control.example.com' },
    ...spec,
  },
});

/** There are: records p1 of node n1 and p2 of node n2, the Mesh, and the Secret of the tailnet. */

const event = (kind: string, apiVersion: string, more: object = {}) =>
  create(`/apis/events.k8s.io/v1/namespaces/${SHOP}/events`, {
    ...{ apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { name: 'e', namespace: SHOP } },
    ...{ eventTime: '2026-01-01T00:00:00.000000Z', reportingController: 'unbounded/tailnet-registrar' },
    ...{ reportingInstance: 'i', action: 'A', reason: 'R', type: 'Normal', note: 'n' },
    regarding: { apiVersion, kind, name: 'p1', namespace: SHOP, ...more },
  });
const condition = (type: string) => status({ conditions: [{ ...CONDITION, type }] });

const POD_STATUS = `/api/v1/namespaces/${SHOP}/pods/p1/status`;

export const registrarMay: readonly Allowed[] = [
  ['what a Pod says of its device', merge(POD_STATUS, condition(podConditions.tailnet))],
  ['a record of a Pod', create(records(), recordObject(7))],
  ['the end of a record', remove(records('p2'))],
  ['a record without its finalizer', merge(records('p1'), finalizers())],
  [
    'its fields',
    merge(records('p1', 'status'), status({ deviceID: 'n1', keyID: 'k', goneID: 'n0', keysGiven: 1, ...SEALED })),
  ],
  ['its condition', merge(records('p1', 'status'), status({ conditions: [CONDITION] }))],
  ['TailnetReady of the Mesh', merge(ourPath('meshes', 'default', 'status'), condition('TailnetReady'))],
  ['an Event about a Pod', event('Pod', 'v1')],
  ['an Event about a record', event('TailnetDevice', GROUP_VERSION)],
];

const path = (resource: string, name = '') => `/api/v1/namespaces/${NAMESPACE}/${resource}${name && `/${name}`}`;
export const registrarMayNotByRole: readonly Refused[] = [
  ['the Secret', merge(path('secrets', SECRET), { data: {} }), RBAC],
  ['a new Secret', create(path('secrets'), { metadata: { name: 's' } }), RBAC],
  ['the Mesh', merge(ourPath('meshes', 'default'), { spec: { tailnet: null } }), RBAC],
  ['a Pod', remove(`/api/v1/namespaces/${SHOP}/pods/p1`), RBAC],
  ['a Node', remove('/api/v1/nodes/n1'), RBAC],
];

const ONLY_FINALIZER = 'may only take the finalizer';
const NODES_FIELDS = 'the rest is for its node';
/** Also where a role of the cluster would let it. */
export const registrarMayNot: readonly Refused[] = [
  [
    'a record of another name',
    create(records(), recordObject(7, { spec: { pod: 'p8' } })),
    'only of the name of its Pod',
  ],
  ['a record of nobody', create(records(), recordObject(7, { metadata: { ownerReferences: [] } })), 'owned by it'],
  ['a record of another Pod', create(records(), recordObject(7, { spec: { podUID: 'u8' } })), 'owned by it'],
  [
    'a record that is forgotten',
    create(records(), recordObject(7, { metadata: { finalizers: [] } })),
    'with the finalizer',
  ],
  ['a record with a label', create(records(), recordObject(7, { metadata: { labels: { a: 'b' } } })), 'without labels'],
  ['a label', merge(records('p1'), { metadata: { labels: { a: 'b' } } }), ONLY_FINALIZER],
  ['another finalizer', merge(records('p1'), finalizers(TAILNET_DEVICE_FINALIZER, 'a.b/c')), ONLY_FINALIZER],
  ['another owner', merge(records('p1'), { metadata: { ownerReferences: null } }), ONLY_FINALIZER],
  ['what a node asks for', merge(records('p1', 'status'), status({ keyRequest: KEY })), NODES_FIELDS],
  ['what a node reports', merge(records('p1', 'status'), status({ reportedID: 'n1' })), NODES_FIELDS],
  ['the state of a device', merge(records('p1', 'status'), status({ state: 'Running' })), NODES_FIELDS],
  ['the relay of the Mesh', merge(ourPath('meshes', 'default', 'status'), condition('RelayReady')), 'only tailnet'],
  ['the Mesh', merge(ourPath('meshes', 'default'), { spec: { tailnet: null } }), 'only tailnet'],
  ['an Event about a Node', event('Node', 'v1'), 'only about Pods'],
  ['the phase of a Pod', merge(POD_STATUS, { status: { phase: 'Failed' } }), 'only the condition'],
  ['another condition of a Pod', merge(POD_STATUS, condition('Ready')), 'only the condition'],
  [
    'the Lease of another program',
    create(`/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`, {
      ...{
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: 'l2-networks', namespace: NAMESPACE },
      },
    }),
    'may write only the Lease',
  ],
];

export const agentMay: readonly Allowed[] = [
  ['its request', merge(records('p1', 'status'), status({ keyRequest: KEY }))],
  ['its request taken back', merge(records('p1', 'status'), status({ keyRequest: null }))],
  ['its device', merge(records('p1', 'status'), status({ reportedID: 'n1', state: 'Running', name: 'a.b' }))],
  ['addresses', merge(records('p1', 'status'), status({ addresses: ['100.64.0.1'], path: 'direct', message: 'm' }))],
];

const OWN = 'only of its own node, not of p2 of node n2';
const REGISTRAR = 'for tailnet-registrar alone';
const STATUS_ONLY = 'may write only the status';
const OTHERS: readonly Refused[] = [
  ['a request for another node’s pod', merge(records('p2', 'status'), status({ keyRequest: KEY })), OWN],
  ['a device for another node’s pod', merge(records('p2', 'status'), status({ reportedID: 'n1' })), OWN],
  ['the state of another node’s device', merge(records('p2', 'status'), status({ state: 'Stopped' })), OWN],
  ['addresses of another node’s device', merge(records('p2', 'status'), status({ addresses: [] })), OWN],
  ['a condition of another node’s device', merge(records('p2', 'status'), status({ conditions: [CONDITION] })), OWN],
  ['the ID of its device', merge(records('p1', 'status'), status({ deviceID: 'n2' })), REGISTRAR],
  ['that its device is gone', merge(records('p1', 'status'), status({ goneID: 'n1' })), REGISTRAR],
  ['the ID of a key', merge(records('p1', 'status'), status({ keyID: 'k1' })), REGISTRAR],
  ['how many keys it had', merge(records('p1', 'status'), status({ keysGiven: 0 })), REGISTRAR],
  ['a key of its own', merge(records('p1', 'status'), status(SEALED)), REGISTRAR],
  ['a condition', merge(records('p1', 'status'), status({ conditions: [CONDITION] })), REGISTRAR],
];
export const agentMayNot: readonly Refused[] = OTHERS;
/** Of these RBAC says so first. */
export const agentMayNotByRole: readonly Refused[] = [
  ['a record', create(records(), recordObject(1, { metadata: { name: 'p7' } })), RBAC],
  ['the end of its record', remove(records('p1')), RBAC],
  ['the end of another node’s record', remove(records('p2')), RBAC],
  ['another node for its record', merge(records('p1'), { spec: { node: 'n2' } }), RBAC],
  ['its record without the finalizer', merge(records('p1'), finalizers()), RBAC],
  ['the Secret', merge(path('secrets', SECRET), { data: {} }), RBAC],
  ['its Pod', remove(`/api/v1/namespaces/${SHOP}/pods/p1`), RBAC],
  ['the Mesh', merge(ourPath('meshes', 'default'), { spec: { tailnet: null } }), RBAC],
];
export const agentMayNotByPolicy: readonly Refused[] = [
  ...OTHERS,
  ['a record', create(records(), recordObject(1, { metadata: { name: 'p7' } })), STATUS_ONLY],
  ['the end of its record', remove(records('p1')), STATUS_ONLY],
  ['the end of another node’s record', remove(records('p2')), STATUS_ONLY],
  ['other labels of its record', merge(records('p1'), { metadata: { labels: { a: 'b' } } }), STATUS_ONLY],
  ['its record without the finalizer', merge(records('p1'), finalizers()), STATUS_ONLY],
];

const MESH = ourPath('meshes', 'default');
const ONLY_TAILNET = 'may only remove spec.tailnet of a Mesh';
export const uninstallMay: readonly Allowed[] = [['no tailnet', merge(MESH, { spec: { tailnet: null } })]];
export const uninstallMayNot: readonly Refused[] = [
  ['another name for the cluster', merge(MESH, { spec: { tailnet: { clusterName: 'x' } } }), ONLY_TAILNET],
  [
    'a relay',
    merge(MESH, { spec: { tailnet: null, relay: { mode: 'never', provider: 'managed', managed: {} } } }),
    ONLY_TAILNET,
  ],
  ['a label of the Mesh', merge(MESH, { spec: { tailnet: null }, metadata: { labels: { a: 'b' } } }), ONLY_TAILNET],
];
export const uninstallMayNotByRole: readonly Refused[] = [
  ['the status of the Mesh', merge(ourPath('meshes', 'default', 'status'), condition('TailnetReady')), RBAC],
  ['another Mesh', create(ourPath('meshes'), { metadata: { name: 'other' }, spec: {} }), RBAC],
  ['the end of the Mesh', remove(MESH), RBAC],
  ['the end of a record', remove(records('p1')), RBAC],
  ['a record without the finalizer', merge(records('p1'), finalizers()), RBAC],
  ['the Secret', merge(path('secrets', SECRET), { data: {} }), RBAC],
];
