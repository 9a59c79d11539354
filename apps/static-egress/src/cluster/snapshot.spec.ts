import { egressAnnotations, GROUP_VERSION } from '@unbounded/crds';
import { formatAddress, formatPrefix, parsePrefix, type Prefix } from '@unbounded/ip';
import type { Node, Pod, Service } from '@unbounded/kube';
import { expect, test } from 'vitest';

import type { EgressObjects } from './egress-objects.ts';
import { podPrint, slicePrint } from './fingerprints.ts';
import { keptPod } from './kept-fields.ts';
import { snapshotOf } from './snapshot.ts';

const EMPTY: EgressObjects = {
  rules: [],
  clusterRules: [],
  pools: [],
  slices: [],
  nodes: [],
  pods: [],
  services: [],
  namespaces: [],
  sites: [],
};
const read = (objects: Partial<EgressObjects>, serviceCidrs: readonly Prefix[] = []) =>
  snapshotOf(
    { ...EMPTY, ...objects },
    {
      isAgentAlive: (uid) => uid === 'u1',
      serviceCidrs,
      now: '2026-01-01T00:00:00Z',
    },
  );
const node = (uid: string, ready: string, annotations = {}): Node => ({
  metadata: { name: `n-${uid}`, uid, annotations },
  spec: { podCIDRs: ['10.244.1.0/24'] },
  status: {
    addresses: [
      { type: 'InternalIP', address: '192.0.2.1' },
      { type: 'ExternalIP', address: '203.0.113.1' },
      { type: 'Hostname', address: 'n' },
    ],
    conditions: [{ type: 'Ready', status: ready }],
  },
});

test('a node is alive while it is ready and its agent sends heartbeats', () => {
  const { nodes } = read({ nodes: [node('u1', 'True'), node('u1', 'Unknown'), node('u2', 'True')] });
  expect(nodes.map(({ isAlive }) => isAlive)).toEqual([true, false, false]);
});

test('a node has internal and external addresses, and is fenced by an annotation of any value', () => {
  const [one] = read({ nodes: [node('u1', 'True', { [egressAnnotations.fenced]: '' })] }).nodes;
  expect(one?.addresses.map(formatAddress)).toEqual(['192.0.2.1', '203.0.113.1']);
  expect(one?.isFenced).toBe(true);
});

test('inside the cluster is what administrators say: blocks of Sites, of Services, and ClusterIPs; all else is claimed', () => {
  const service = {
    metadata: { name: 's', namespace: 'd' },
    spec: { clusterIPs: ['10.96.0.10', 'None'], externalIPs: ['198.51.100.7'] },
    status: { loadBalancer: { ingress: [{ ip: '198.51.100.8' }, { hostname: 'lb' }] } },
  } as unknown as Service;
  const site = {
    apiVersion: GROUP_VERSION,
    kind: 'Site' as const,
    metadata: { name: 'a' },
    spec: { nodeCidrs: ['192.0.2.0/24'], podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/16'] }] },
  };
  const { cluster, claims } = read({ services: [service], sites: [site], nodes: [node('u1', 'True')] }, [
    parsePrefix('10.96.0.0/12'),
  ]);
  expect(cluster.pods.map(formatPrefix)).toEqual(['100.64.0.0/16']);
  expect(cluster.services.map(formatPrefix)).toEqual(['10.96.0.0/12']);
  expect(claims.map(({ prefix, usage, by }) => [formatPrefix(prefix), usage, by])).toEqual([
    ['198.51.100.7/32', 'AddressOfService', 'Service d/s'],
    ['198.51.100.8/32', 'AddressOfService', 'Service d/s'],
    ['10.244.1.0/24', 'AddressOfPod', 'Node n-u1'],
  ]);
});

const pod = (rest: object, status: object = {}): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'd', uid: 'u', resourceVersion: '7', annotations: { large: 'x' } },
    spec: { nodeName: 'n1', containers: [{ name: 'c' }], ...rest },
    status: { phase: 'Running', podIPs: [{ ip: '10.244.1.7' }], containerStatuses: [{}], ...status },
  }) as unknown as Pod;

test('of a pod is kept what a plan reads, and a change of anything else asks for no plan', () => {
  const kept = keptPod(pod({}));
  expect(Object.keys(kept.metadata).toSorted()).toEqual(['name', 'namespace', 'resourceVersion', 'uid']);
  expect(read({ pods: [kept] }).pods).toEqual(read({ pods: [pod({})] }).pods);
  expect(podPrint(pod({}, { containerStatuses: [{}, {}] }))).toBe(podPrint(kept));
  expect(podPrint(pod({}, { phase: 'Pending' }))).toBe(podPrint(kept));
  expect(podPrint(pod({}, { podIPs: [] }))).not.toBe(podPrint(kept));
  expect(podPrint(pod({}, { phase: 'Succeeded' }))).not.toBe(podPrint(kept));
});

test('a heartbeat and a confirmed generation ask for no plan, a released address does', () => {
  const slice = (status: object) => ({
    apiVersion: GROUP_VERSION,
    kind: 'EgressNodeSlice' as const,
    metadata: { name: 'n1-0', uid: 'u', resourceVersion: String(Math.random()) },
    spec: { nodeName: 'n1', nodeUID: 'u1', index: 0 },
    status,
  });
  expect(slicePrint(slice({ heartbeat: 1, observedGeneration: 7 }))).toBe(slicePrint(slice({ heartbeat: 2 })));
  expect(slicePrint(slice({ released: [{ address: '192.0.2.9', epoch: 1 }] }))).not.toBe(slicePrint(slice({})));
});
