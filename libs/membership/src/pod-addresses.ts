import type { Site } from '@unbounded/crds';
import { type Address, AddressSet, containsAddress, containsPrefix, type Prefix } from '@unbounded/ip';

import { siteBlocks } from './site-blocks.ts';

/** Which addresses pods of the Sites have. */
export interface PodAddresses {
  /** Whether any Site's cidrBlocks hold the address. */
  has(address: Address): boolean;
  /** The Site to whose pods the operator gave an address inside the nodeCidrs of `own`; undefined: it can be a node's. */
  siteOf(own: Site, address: Address): Site | undefined;
}

/**
 * A block inside the nodes' own range is the pods'. Of a wider one the block is wrong, not the nodes; and where another CNI
 * plugin manages a Site, its pods and nodes may have addresses of one block. The agents' planner decides the same way.
 */
export const createPodAddresses = (sites: readonly Site[]): PodAddresses => {
  const all = AddressSet.of(sites.flatMap((site) => siteBlocks(site).podPrefixes));
  return {
    has: (address) => all.has(address),
    siteOf: (own, address) => {
      if (!all.has(address)) return undefined;
      const ranges = siteBlocks(own).nodePrefixes.filter((range) => containsAddress(range, address));
      const isInside = (block: Prefix): boolean =>
        ranges.some((range) => range.length < block.length && containsPrefix(range, block));
      return sites.find(
        (site) =>
          (site !== own || site.spec.manageCniPlugin !== false) &&
          siteBlocks(site).podPrefixes.some((block) => containsAddress(block, address) && isInside(block)),
      );
    },
  };
};
