import type { FDBEntry, Neighbor, Network, NetworkEndpoint } from '@unbounded/crds';
import type { Prefix } from '@unbounded/ip';

/** What a node knows when it plans its part of the networks that it hosts. */
export interface L2Snapshot {
  /** This one. */
  readonly node: string;
  readonly networks: readonly Network[];
  /** Of the networks that the node hosts, at all nodes. */
  readonly endpoints: readonly NetworkEndpoint[];
  readonly fdbEntries: readonly FDBEntry[];
  readonly neighbors: readonly Neighbor[];
  /** By node: its /64 of IPv6. */
  readonly locators: ReadonlyMap<string, Prefix>;
  /** Nodes to whose locators no link of this one leads. */
  readonly unreached: ReadonlySet<string>;
  /** Names of devices, by NAMESPACE/NAME of the endpoint: those that are there. */
  readonly ports: ReadonlyMap<string, string>;
}

export const endpointKey = ({ metadata }: NetworkEndpoint): string => `${metadata.namespace ?? ''}/${metadata.name}`;
