/** What the last plan gave to whom: in a conflict that the objects cannot decide it stays where it was. */

export interface Holding {
  readonly node: string;
  /** WireGuard public keys, the current one and the next. */
  readonly keys: readonly string[];
  /** Pod CIDRs and the locator. */
  readonly blocks: readonly string[];
  /** Addresses of the node itself that were routed to it. */
  readonly addresses: readonly string[];
}

/** Holdings by what is asked for. */
export interface Holders {
  keyHolder(key: string): string | undefined;
  holdsBlock(node: string, block: string): boolean;
  holdsAddress(node: string, address: string): boolean;
}

export const createHolders = (holdings: readonly Holding[]): Holders => {
  const byNode = new Map<string, { blocks: Set<string>; addresses: Set<string> }>();
  const keys = new Map<string, string>();
  for (const { node, keys: held, blocks, addresses } of holdings) {
    for (const key of held) if (!keys.has(key)) keys.set(key, node);
    const known = byNode.get(node);
    byNode.set(node, {
      blocks: new Set([...(known?.blocks ?? []), ...blocks]),
      addresses: new Set([...(known?.addresses ?? []), ...addresses]),
    });
  }
  return {
    keyHolder: (key) => keys.get(key),
    holdsBlock: (node, block) => byNode.get(node)?.blocks.has(block) ?? false,
    holdsAddress: (node, address) => byNode.get(node)?.addresses.has(address) ?? false,
  };
};
