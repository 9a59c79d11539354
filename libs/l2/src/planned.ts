import type { Address, Prefix } from '@unbounded/ip';
import type { SegmentPair } from './segments.ts';

/** What one node's kernel is to hold for the networks that it hosts. Numbers of segments count within the node alone. */
export interface L2Plan {
  readonly networks: readonly PlannedNetwork[];
  readonly ports: readonly PlannedPort[];
  readonly fdb: readonly PlannedStation[];
  readonly neighbors: readonly PlannedNeighbor[];
  readonly problems: readonly L2Problem[];
}

export interface PlannedNetwork {
  readonly number: number;
  readonly name: string;
  /** Bytes of an IP packet. */
  readonly mtu: number;
  readonly replicates: { readonly unknownUnicast: boolean; readonly broadcast: boolean; readonly multicast: boolean };
  /** Locators of the other nodes that host it. */
  readonly replicas: readonly Prefix[];
  /** Segments that talk with each other, besides each with itself. */
  readonly segmentPairs: readonly SegmentPair[];
}

export interface PlannedPort {
  readonly device: string;
  readonly network: number;
  readonly segment: number;
  readonly mac: string;
  readonly addresses: readonly Address[];
  readonly isTrusted: boolean;
}

/** Where frames for a MAC address go: to a device of this node, or to another node by its locator. */
export interface PlannedStation {
  readonly network: number;
  readonly mac: string;
  readonly segment: number;
  /** May send what routers and DHCP servers send: other nodes go by it as its own port does. */
  readonly isTrusted: boolean;
  readonly to: { readonly device: string } | { readonly locator: Prefix };
}

export interface PlannedNeighbor {
  readonly network: number;
  readonly ip: Address;
  readonly mac: string;
}

/** Reasons of problems that one entry has alone: the node forwards for the others. */
const OF_ENTRIES = [
  ...['NoSuchEndpoint', 'NotOfEndpoint', 'OutsidePrefixes', 'NoSuchSegment', 'NoPort'],
  'TooManyEndpoints',
  'OlderThanNetwork',
] as const;

/** What is replicated in one Network does not reach all of it. */
const OF_ONE_NETWORK = 'NetworkTooLarge';

/** Whether a node with a problem of this reason forwards for the rest. */
export const isOfPart = (reason: string): boolean =>
  reason === OF_ONE_NETWORK || OF_ENTRIES.some((one) => one === reason);

/** An object, or a part of it, that does not do what it says; it affects no other one. */
export interface L2Problem {
  readonly kind: 'FDBEntry' | 'Neighbor' | 'NetworkEndpoint';
  readonly name: string;
  /** CamelCase. */
  readonly reason: (typeof OF_ENTRIES)[number] | 'NoLocator' | 'LocatorNotCarried';
  /** Path in the object. */
  readonly field: string;
  readonly value: string;
  /** What is the matter and what to do: goes on after field and value. */
  readonly remedy: string;
}
