import {
  type Address,
  AddressSet,
  containsAddress,
  containsPrefix,
  formatPrefix,
  parseAddress,
  type Prefix,
  SHORTEST_BLOCK,
  specialRangeIn,
  specialRangeOf,
} from '@unbounded/ip';
import type { Holders } from './holdings.ts';

/**
 * Where the addresses and blocks that a node states may lie: kubelets write both, so they count only inside what the
 * operator gave to the node's Site.
 */
export interface Confinement {
  /** Whether an InternalIP of a node may be used. */
  hasAddress(node: Place, address: string): boolean;
  /** Whether a pod CIDR of a node may be used. */
  hasBlock(node: Place, block: Prefix): boolean;
}

/** What a Site gives out. */
interface SiteRanges {
  readonly nodeCidrs: readonly Prefix[];
  readonly podCidrs: readonly Prefix[];
  readonly locatorBlock?: Prefix | undefined;
  readonly manageCni: boolean;
  readonly assignsBlocks: boolean;
}

interface Place {
  readonly name: string;
  readonly site: string;
}

export const isSpecial = (address: string): boolean => specialRangeOf(parseAddress(address)) !== undefined;

export const createConfinement = (
  sites: ReadonlyMap<string, SiteRanges>,
  routedCidrs: readonly Prefix[],
  holders: Holders,
): Confinement => {
  const all = [...sites.values()];
  const pods = AddressSet.of(all.flatMap(({ podCidrs }) => podCidrs));
  const nodes = AddressSet.of(all.flatMap(({ nodeCidrs }) => nodeCidrs));
  const routed = AddressSet.of(routedCidrs);
  const locators = AddressSet.of(all.flatMap(({ locatorBlock }) => locatorBlock ?? []));
  /**
   * Whether the operator gave the address to pods: by a block inside the nodes' own range. Of a wider one, or one that came
   * after the node, the block is wrong. Another CNI plugin may give pods and nodes addresses of the same block.
   */
  const isPods = (own: SiteRanges | undefined, address: Address): boolean => {
    if (!pods.has(address)) return false;
    const ranges = own?.nodeCidrs.filter((range) => containsAddress(range, address));
    const isInside = (block: Prefix): boolean =>
      ranges?.some((range) => range.length < block.length && containsPrefix(range, block)) ?? true;
    return all.some(
      (site) =>
        (site !== own || site.manageCni) &&
        site.podCidrs.some((block) => containsAddress(block, address) && isInside(block)),
    );
  };
  return {
    hasAddress({ name, site }, text) {
      const own = sites.get(site);
      const address = parseAddress(text);
      if (isSpecial(text) || locators.has(address) || (isPods(own, address) && !holders.holdsAddress(name, text)))
        return false;
      return own ? own.nodeCidrs.some((range) => containsAddress(range, address)) : !nodes.has(address);
    },
    hasBlock({ name, site }, block) {
      const own = sites.get(site);
      if (specialRangeIn(block) || block.length < SHORTEST_BLOCK[block.family] || locators.overlaps(block))
        return false;
      if (own?.podCidrs.some((outer) => containsPrefix(outer, block))) return true;
      const isHeld = holders.holdsBlock(name, formatPrefix(block));
      // A Site that is being corrected: who had the block keeps it.
      if (pods.overlaps(block)) return !own && isHeld;
      if (nodes.overlaps(block) || routed.overlaps(block)) return false;
      return isHeld || !own?.assignsBlocks;
    },
  };
};
