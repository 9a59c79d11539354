import {
  type Address,
  AddressSet,
  addressBits,
  hostPrefix,
  lastAddress,
  type Prefix,
  prefixOf,
  specialRangeOf,
} from '@unbounded/ip';

import type { ClusterPrefixes, EgressNode } from '../snapshot.ts';

/** What an address is already, so that no rule can have it; `undefined`: nothing that is known. */
export type Usage = 'AddressOfNode' | 'AddressOfPod' | 'AddressOfService' | 'NotUnicast' | undefined;

const SUBNET_WITHOUT_OWN_ADDRESS = { 4: 31, 6: 127 } as const; // RFC 3021, RFC 6164

/** The addresses of a subnet that no host may have: its own, and of IPv4 that of broadcast. */
const subnetAddresses = (subnet: Prefix): Prefix[] => {
  const { family, length, address } = subnet;
  if (length >= SUBNET_WITHOUT_OWN_ADDRESS[family]) return [];
  const first = prefixOf({ family, value: address }, addressBits(family));
  return family === 4 ? [first, hostPrefix(lastAddress(subnet))] : [first];
};

/** Answers what addresses are; one for all rules of a plan. */
export interface AddressUsage {
  readonly of: (address: Address) => Usage;
  /** Addresses of nodes and of subnets: left out when a pool gives addresses. */
  readonly unallocatable: readonly Prefix[];
}

export const usageOf = (
  nodes: readonly EgressNode[],
  cluster: ClusterPrefixes,
  subnets: readonly Prefix[],
): AddressUsage => {
  const ofNodes = nodes.flatMap(({ addresses }) => addresses.map(hostPrefix));
  const ofSubnets = subnets.flatMap(subnetAddresses);
  const sets = [
    ['AddressOfNode', AddressSet.of(ofNodes)],
    ['AddressOfPod', AddressSet.of(cluster.pods)],
    ['AddressOfService', AddressSet.of(cluster.services)],
    ['NotUnicast', AddressSet.of(ofSubnets)],
  ] as const;
  return {
    of: (address) => {
      if (specialRangeOf(address)) return 'NotUnicast';
      return sets.find(([, set]) => set.has(address))?.[0];
    },
    unallocatable: [...ofNodes, ...ofSubnets],
  };
};

/** What to do about an address that is in use already. */
export const usageRemedy: Readonly<Record<NonNullable<Usage>, string>> = {
  AddressOfNode: 'is the address of a node: take one that no host has',
  AddressOfPod: 'is inside a block of pods: take one outside of the cluster’s networks',
  AddressOfService: 'is inside a block of Services: take one outside of the cluster’s networks',
  NotUnicast:
    'is no address that a host can have (multicast, loopback, link-local, or that of a whole subnet): take another one',
};
