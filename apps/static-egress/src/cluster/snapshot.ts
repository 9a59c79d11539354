import { egressAnnotations, type Site } from '@unbounded/crds';
import type { Claim, EgressNode, EgressPod, EgressSnapshot, FormerGrant } from '@unbounded/egress';
import { type Address, hostPrefix, type Prefix, tryParseAddress, tryParsePrefix, withoutCovered } from '@unbounded/ip';
import type { Node, Pod, Service } from '@unbounded/kube';
import { nodeFacts } from '@unbounded/membership';

import type { EgressObjects } from './egress-objects.ts';
import { isFinished } from './kept-fields.ts';

/** What no object says. */
export interface SnapshotContext {
  /** Whether the agent of a node works, by the UID of the Node. */
  readonly isAgentAlive: (nodeUid: string) => boolean;
  /** Ranges of Services that the operator gave, and that the API server names. */
  readonly serviceCidrs: readonly Prefix[];
  /** Of Nodes that were made anew, while these may be held; none for who has just begun to look. */
  readonly formerGrants?: readonly FormerGrant[];
  /** RFC 3339. */
  readonly now: string;
}

const addressesOf = (texts: readonly (string | undefined)[]): readonly Address[] =>
  texts.flatMap((text) => (text === undefined ? [] : (tryParseAddress(text) ?? [])));

const isReady = ({ status }: Node): boolean =>
  (status?.conditions ?? []).some((condition) => condition.type === 'Ready' && condition.status === 'True');

const egressNode = (node: Node, isAgentAlive: SnapshotContext['isAgentAlive']): EgressNode => {
  const { name, uid, labels, internalAddresses, externalIPs, podPrefixes, createdAt } = nodeFacts(node);
  const createdMs = Date.parse(createdAt);
  return {
    name,
    uid,
    labels,
    addresses: [...internalAddresses, ...addressesOf(externalIPs)],
    podBlocks: podPrefixes,
    ...(!Number.isNaN(createdMs) && { createdMs }),
    isAlive: isReady(node) && isAgentAlive(uid),
    isFenced: node.metadata.annotations?.[egressAnnotations.fenced] !== undefined,
  };
};

/** Objects of a cache do not change, so neither do their addresses: thousands of pods are read once, not for every plan. */
const knownPods = new WeakMap<Pod, EgressPod>();

const readPod = (pod: Pod): EgressPod => {
  const { metadata, spec, status } = pod;
  return {
    uid: metadata.uid ?? '',
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    node: spec?.nodeName ?? '',
    labels: metadata.labels ?? {},
    addresses: addressesOf((status?.podIPs ?? []).map(({ ip }) => ip)),
    isHostNetwork: spec?.hostNetwork === true,
    isFinished: isFinished(pod),
  };
};

const egressPod = (pod: Pod): EgressPod => {
  const read = knownPods.get(pod) ?? readPod(pod);
  knownPods.set(pod, read);
  return read;
};

/** Of the ranges that the API server has for them. */
const clusterAddresses = ({ spec }: Service): readonly Address[] => addressesOf(spec?.clusterIPs ?? []);

/** Addresses outside of the cluster that Services have: packets to them are answered by pods, and those from them would be taken for answers. */
const serviceClaims = ({ metadata, spec, status }: Service): readonly Claim[] =>
  addressesOf([...(spec?.externalIPs ?? []), ...(status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip)]).map(
    (address) => ({
      prefix: hostPrefix(address),
      usage: 'AddressOfService',
      by: `Service ${metadata.namespace}/${metadata.name}`,
    }),
  );

const podBlocks = (sites: readonly Site[]): readonly Prefix[] =>
  sites.flatMap(({ spec }) =>
    (spec.podCidrAssignments ?? []).flatMap(({ cidrBlocks }) =>
      (cidrBlocks ?? []).flatMap((text) => tryParsePrefix(text) ?? []),
    ),
  );

/** A kubelet can register its Node with any. */
const nodeClaims = (node: Node): readonly Claim[] => {
  const { name, podPrefixes } = nodeFacts(node);
  return podPrefixes.map((prefix) => ({ prefix, usage: 'AddressOfPod', by: `Node ${name}` }));
};

/**
 * What a plan is made from. Blocks of pods are those of the Sites; what Nodes and Services say of themselves are claims, since others
 * than administrators write them. The `nodeCidrs` of Sites are not inside the cluster: egress addresses are of the networks that nodes
 * are attached to, and each node's own addresses are known.
 */
export const snapshotOf = (
  { rules, clusterRules, pools, slices, nodes, pods, services, namespaces, sites }: EgressObjects,
  { isAgentAlive, serviceCidrs, formerGrants = [], now }: SnapshotContext,
): EgressSnapshot => ({
  rules,
  clusterRules,
  pools,
  slices,
  formerGrants,
  nodes: nodes.map((node) => egressNode(node, isAgentAlive)),
  pods: pods.filter(({ spec }) => spec?.nodeName !== undefined).map(egressPod),
  services: services.map(({ metadata, spec }) => ({
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    selector: spec?.selector,
  })),
  namespaces: namespaces.map(({ metadata }) => ({ name: metadata.name, labels: metadata.labels ?? {} })),
  cluster: {
    pods: withoutCovered(podBlocks(sites)),
    services: withoutCovered([...serviceCidrs, ...services.flatMap(clusterAddresses).map(hostPrefix)]),
  },
  claims: [...services.flatMap(serviceClaims), ...nodes.flatMap(nodeClaims)],
  now,
});
