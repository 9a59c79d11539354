import type { ClusterStaticEgressIP, EgressIPPool, EgressNodeSlice, StaticEgressIP } from '@unbounded/crds';
import type { Labels } from '@unbounded/label-selector';
import type { Address, Prefix } from '@unbounded/ip';

/** A Node that exists. */
export interface EgressNode {
  readonly name: string;
  readonly uid: string;
  readonly labels: Labels;
  /** Internal and external ones. */
  readonly addresses: readonly Address[];
  /** Blocks of the addresses that its pods have. */
  readonly podBlocks: readonly Prefix[];
  /** Of its Node object, since 1970; absent: not known, and no younger one keeps anything from it. */
  readonly createdMs?: number;
  /** Its agent and its Node object answer in time. Whoever makes the snapshot decides, and damps it. */
  readonly isAlive: boolean;
  /** An operator states that the machine is off (the annotation egress-fenced); counts while it is not alive. */
  readonly isFenced: boolean;
}

/** A Pod that is scheduled. */
export interface EgressPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  readonly labels: Labels;
  /** Empty until it has some. */
  readonly addresses: readonly Address[];
  readonly isHostNetwork: boolean;
  /** Succeeded or Failed: its addresses may be those of another pod. */
  readonly isFinished: boolean;
}

export interface EgressService {
  readonly namespace: string;
  readonly name: string;
  /** Undefined or empty: it selects no pods. */
  readonly selector: Labels | undefined;
}

interface EgressNamespace {
  readonly name: string;
  readonly labels: Labels;
}

/** Destinations that are inside, as administrators say: never steered, and no egress address may be one of them. */
export interface ClusterPrefixes {
  readonly pods: readonly Prefix[];
  readonly services: readonly Prefix[];
}

/** What others than administrators say that addresses are: no egress address is given anew there, and none is taken away for it. */
export interface Claim {
  readonly prefix: Prefix;
  readonly usage: 'AddressOfNode' | 'AddressOfPod' | 'AddressOfService';
  /** Who says so, for people: `Service shop/web` */
  readonly by: string;
}

/** An address of a Node that was made anew under its name, of before: whoever had it may have it still. */
export interface FormerGrant {
  readonly node: string;
  readonly address: string;
  readonly epoch: number;
}

/**
 * All that a plan depends on. It must be no older than what was last written from a plan: who owns an address stands in the
 * slices and in the status of the rules.
 */
export interface EgressSnapshot {
  readonly rules: readonly StaticEgressIP[];
  readonly clusterRules: readonly ClusterStaticEgressIP[];
  readonly pools: readonly EgressIPPool[];
  readonly slices: readonly EgressNodeSlice[];
  readonly nodes: readonly EgressNode[];
  /** Those that no node can confirm to have released. Whoever makes the snapshot decides for how long. */
  readonly formerGrants: readonly FormerGrant[];
  readonly pods: readonly EgressPod[];
  readonly services: readonly EgressService[];
  readonly namespaces: readonly EgressNamespace[];
  readonly cluster: ClusterPrefixes;
  /** Those of nodes' own addresses and subnets are not repeated here. */
  readonly claims: readonly Claim[];
  /** RFC 3339: since when an owner that this plan names is one. */
  readonly now: string;
}
