import type { EgressNodeSlice } from '@unbounded/crds';
import { type Address, containsAddress, type Prefix, SHORTEST_BLOCK, tryParsePrefix } from '@unbounded/ip';

/** A network, and the devices by which nodes are attached to it. */
export interface AttachedSubnet {
  readonly prefix: Prefix;
  readonly nodes: readonly { readonly node: string; readonly interface: string }[];
}

export interface ReportedSubnets {
  readonly attached: readonly AttachedSubnet[];
  /**
   * Too large to be a network of hosts. A node that reports 0.0.0.0/0 would be attached to whatever address there is, and get addresses
   * that it cannot answer for.
   */
  readonly ignored: readonly AttachedSubnet[];
}

/** What agents report, by network: nodes of a site share theirs, so there are few. */
export const reportedSubnets = (slices: readonly EgressNodeSlice[]): ReportedSubnets => {
  const byCidr = new Map<string, { node: string; interface: string }[]>();
  for (const { spec, status } of slices) {
    for (const { cidr, interface: device } of status?.subnets ?? []) {
      const nodes = byCidr.get(cidr) ?? [];
      if (nodes.length === 0) byCidr.set(cidr, nodes);
      nodes.push({ node: spec.nodeName, interface: device });
    }
  }
  const all = [...byCidr].flatMap(([cidr, nodes]) => {
    const prefix = tryParsePrefix(cidr);
    return prefix ? [{ prefix, nodes }] : [];
  });
  const isHeeded = ({ prefix: { family, length } }: AttachedSubnet): boolean => length >= SHORTEST_BLOCK[family];
  return { attached: all.filter(isHeeded), ignored: all.filter((subnet) => !isHeeded(subnet)) };
};

/** Nodes that can answer for the address on a network of theirs, on this device only if one is given. */
export const nodesAttachedTo = (
  subnets: readonly AttachedSubnet[],
  address: Address,
  device: string | undefined,
): ReadonlySet<string> =>
  new Set(
    subnets
      .filter(({ prefix }) => containsAddress(prefix, address))
      .flatMap(({ nodes }) => nodes)
      .filter((attached) => device === undefined || attached.interface === device)
      .map(({ node }) => node),
  );
