import {
  type Address,
  AddressSet,
  addressBits,
  containsAddress,
  hostPrefix,
  lastAddress,
  type Prefix,
  prefixOf,
  specialRangeOf,
} from '@unbounded/ip';

import type { AttachedSubnet } from '../owners/subnets.ts';
import type { Pool } from '../pools/pool.ts';
import type { Claim, ClusterPrefixes, EgressNode } from '../snapshot.ts';

/** What an address is already, so that no rule can have it. */
export type Usage = Claim['usage'] | 'AddressOfRouter' | 'NotUnicast';

const SUBNET_WITHOUT_OWN_ADDRESS = { 4: 31, 6: 127 } as const; // RFC 3021, RFC 6164

/** The addresses of a subnet that no host may have: its own, and of IPv4 that of broadcast. */
const subnetAddresses = (subnet: Prefix): Prefix[] => {
  const { family, length, address } = subnet;
  if (length >= SUBNET_WITHOUT_OWN_ADDRESS[family]) return [];
  const first = prefixOf({ family, value: address }, addressBits(family));
  return family === 4 ? [first, hostPrefix(lastAddress(subnet))] : [first];
};

/** What somebody says of some addresses. */
interface Statement {
  readonly prefix: Prefix;
  readonly usage: Usage;
  /** `Node n1` */
  readonly by: string;
}

/** Answers what addresses are; one for all rules of a plan. */
export interface AddressUsage {
  /** By what administrators and standards say: no rule can have it, nor keep it. */
  readonly fixed: (address: Address) => Usage | undefined;
  /**
   * By what namespaces, kubelets and agents say of themselves: no rule gets it, but one that has it keeps it. Whoever may write a Service
   * or has the token of a node could take any address away otherwise.
   */
  readonly claimOf: (address: Address, pool: Pool | undefined) => Pick<Statement, 'usage' | 'by'> | undefined;
  /** What a pool does not give for such claims. */
  readonly claimedIn: (pool: Pool) => AddressSet;
}

export interface UsageContext {
  /** Routers by which packets leave. */
  readonly nextHops: readonly Address[];
  readonly nodes: readonly EgressNode[];
  readonly cluster: ClusterPrefixes;
  readonly claims: readonly Claim[];
  readonly subnets: readonly AttachedSubnet[];
  /** Nodes that can own addresses of the pool. */
  readonly candidatesOf: (pool: Pool | undefined) => readonly EgressNode[];
}

const nodeStatements = ({ nodes }: UsageContext): Statement[] =>
  nodes.flatMap(({ name, addresses }) =>
    addresses.map((address) => ({ prefix: hostPrefix(address), usage: 'AddressOfNode' as const, by: `Node ${name}` })),
  );

/** A subnet concerns those addresses alone that its nodes could own. */
const subnetStatements = ({ subnets, candidatesOf }: UsageContext, pool: Pool | undefined): Statement[] => {
  const names = new Set(candidatesOf(pool).map(({ name }) => name));
  return subnets.flatMap(({ prefix, nodes }) => {
    const node = nodes.find((attached) => names.has(attached.node))?.node;
    if (node === undefined) return [];
    return subnetAddresses(prefix).map((own) => ({
      prefix: own,
      usage: 'NotUnicast' as const,
      by: `the agent of node ${node}`,
    }));
  });
};

interface StatedAddresses {
  readonly statements: readonly Statement[];
  readonly all: AddressSet;
  /** Of the pool. */
  readonly inPool: AddressSet;
}

export const usageOf = (context: UsageContext): AddressUsage => {
  const { cluster, claims } = context;
  const pods = AddressSet.of(cluster.pods);
  const services = AddressSet.of(cluster.services);
  const routers = AddressSet.of(context.nextHops.map(hostPrefix));
  const ofAll = [...nodeStatements(context), ...claims];
  const known = new Map<Pool | undefined, StatedAddresses>();
  const statedFor = (pool: Pool | undefined): StatedAddresses => {
    const found = known.get(pool);
    if (found) return found;
    const statements = [...ofAll, ...subnetStatements(context, pool)];
    const prefixes = statements.map(({ prefix }) => prefix);
    const inPool = AddressSet.of(prefixes.filter((prefix) => pool?.given.overlaps(prefix)));
    const stated = { statements, all: AddressSet.of(prefixes), inPool };
    known.set(pool, stated);
    return stated;
  };
  return {
    fixed: (address) => {
      if (specialRangeOf(address)) return 'NotUnicast';
      if (pods.has(address)) return 'AddressOfPod';
      if (routers.has(address)) return 'AddressOfRouter';
      return services.has(address) ? 'AddressOfService' : undefined;
    },
    claimOf: (address, pool) => {
      const { statements, all } = statedFor(pool);
      return all.has(address) ? statements.find(({ prefix }) => containsAddress(prefix, address)) : undefined;
    },
    claimedIn: (pool) => statedFor(pool).inPool,
  };
};

/** What to do about an address that is in use already. */
export const usageRemedy: Readonly<Record<Usage, string>> = {
  AddressOfNode: 'is the address of a node: take one that no host has',
  AddressOfPod: 'is inside a block of pods: take one outside of the cluster’s networks',
  AddressOfService: 'is inside a block of Services: take one outside of the cluster’s networks',
  AddressOfRouter: 'is a next hop of an EgressIPPool: take one that no host has',
  NotUnicast:
    'is no address that a host can have (multicast, loopback, link-local, or that of a whole subnet): take another one',
};

const CLAIMED_AS: Readonly<Record<Usage, string>> = {
  AddressOfNode: 'an address of its own',
  AddressOfPod: 'one of its pods',
  AddressOfService: 'an address of its own',
  AddressOfRouter: 'a router',
  NotUnicast: 'that of a whole subnet',
};

/** What to do about an address that a rule has and somebody else claims. */
export const claimRemedy = ({ usage, by }: Pick<Statement, 'usage' | 'by'>): string =>
  `${by} claims it as ${CLAIMED_AS[usage]}; the rule has it and keeps it, and its pods go on: take it away from ${by}, or give the rule another one`;
