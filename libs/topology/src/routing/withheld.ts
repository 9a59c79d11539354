import { AddressSet, containsPrefix, hostPrefix, parseAddress, type Prefix } from '@unbounded/ip';

/** What must be reached past a block that is not routed. */
export interface Underlay {
  /** Addresses that the node needs of it. */
  readonly hosts: readonly string[];
  /** Blocks of nodes on the node's own network. */
  readonly near: readonly Prefix[];
}

/**
 * A block of pods that is not routed, since it holds an address of the underlay, is the pods' for all that: what is for it does
 * not leave in the clear, and what comes from it by no tunnel is forged. Otherwise one address that a node states inside it would
 * expose its traffic. Left out are the addresses that are needed, and the node's own network, unless the block is a part of that.
 */
export const withheldOf = (blocks: readonly Prefix[], { hosts, near }: Underlay): Prefix[] => {
  if (blocks.length === 0) return [];
  const needed = AddressSet.of(hosts.map((address) => hostPrefix(parseAddress(address))));
  return blocks.flatMap((block) => {
    const isPart = (range: Prefix): boolean => range.length < block.length && containsPrefix(range, block);
    const around = AddressSet.of(near.filter((range) => !isPart(range)));
    return AddressSet.of([block]).subtract(needed).subtract(around).toPrefixes();
  });
};
