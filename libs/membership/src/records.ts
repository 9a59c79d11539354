import type { Gateway, GatewayPool, SiteNode, SiteNodeSlice } from '@unbounded/crds';
import { formatAddress, formatPrefix, tryParsePrefix } from '@unbounded/ip';

import { tryParseAddress } from './external-address.ts';

/** What slices and pool status list for a node: the order in which claims were accepted survives restarts there. */
export interface NodeRecord {
  /** Current and next WireGuard keys. */
  readonly keys: ReadonlySet<string>;
  /** Canonical, as are the external ones. */
  readonly internalIPs: ReadonlySet<string>;
  readonly externalIPs: readonly string[];
  /** Canonical. */
  readonly podCIDRs: ReadonlySet<string>;
  /** Canonical. */
  readonly l2Locators: ReadonlySet<string>;
}

const NOTHING: NodeRecord = {
  keys: new Set(),
  internalIPs: new Set(),
  externalIPs: [],
  podCIDRs: new Set(),
  l2Locators: new Set(),
};

const canonicalAddresses = (texts: readonly string[]): string[] =>
  texts.flatMap((text) => {
    const address = tryParseAddress(text);
    return address ? [formatAddress(address)] : [];
  });

const canonicalBlocks = (texts: readonly string[]): string[] =>
  texts.flatMap((text) => {
    const prefix = tryParsePrefix(text);
    return prefix ? [formatPrefix(prefix)] : [];
  });

const withEntry = (record: NodeRecord, entry: SiteNode | Gateway): NodeRecord => {
  const externalIPs = 'externalIPs' in entry ? canonicalAddresses(entry.externalIPs ?? []) : [];
  const keys = [entry.wireGuardPublicKey, entry.wireGuardNextPublicKey].filter(
    (key) => key !== undefined && key !== '',
  );
  return {
    keys: new Set([...record.keys, ...(keys as string[])]),
    internalIPs: new Set([...record.internalIPs, ...canonicalAddresses(entry.internalIPs ?? [])]),
    externalIPs: [...record.externalIPs, ...externalIPs],
    podCIDRs: new Set([...record.podCIDRs, ...canonicalBlocks(entry.podCIDRs ?? [])]),
    l2Locators:
      entry.l2Locator === undefined
        ? record.l2Locators
        : new Set([...record.l2Locators, ...canonicalBlocks([entry.l2Locator])]),
  };
};

/** The records of all nodes that something lists, by name. */
export const recordsByNode = (
  slices: readonly SiteNodeSlice[],
  pools: readonly GatewayPool[],
): ReadonlyMap<string, NodeRecord> => {
  const records = new Map<string, NodeRecord>();
  const entries = [
    ...slices.flatMap(({ nodes }): readonly (SiteNode | Gateway)[] => nodes ?? []),
    ...pools.flatMap(({ status }): readonly (SiteNode | Gateway)[] => status?.nodes ?? []),
  ];
  for (const entry of entries) records.set(entry.name, withEntry(records.get(entry.name) ?? NOTHING, entry));
  return records;
};

/** The record of a node by name; an empty one for a node that nothing lists. */
export const readRecords = (
  slices: readonly SiteNodeSlice[],
  pools: readonly GatewayPool[],
): ((node: string) => NodeRecord) => {
  const records = recordsByNode(slices, pools);
  return (node) => records.get(node) ?? NOTHING;
};
