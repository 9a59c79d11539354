import { L2_LOCATOR_BLOCK_BITS, type Site } from '@unbounded/crds';
import {
  AddressSet,
  comparePrefixes,
  containsPrefix,
  formatPrefix,
  parsePrefix,
  type Prefix,
  prefixOf,
  tryParsePrefix,
} from '@unbounded/ip';
import { indexSites, type NodeFacts } from '@unbounded/membership';

export interface LocatorBlocks {
  /** By Site. */
  readonly blocks: ReadonlyMap<string, Prefix>;
  /** Sites for which the prefix has no block left. */
  readonly waiting: readonly string[];
  /** Blocks that no status shows yet. */
  readonly given: number;
}

const standingBlock = ({ status }: Site, prefix: Prefix): Prefix | undefined => {
  const block = tryParsePrefix(status?.l2LocatorBlock ?? '');
  return block?.length === L2_LOCATOR_BLOCK_BITS && containsPrefix(prefix, block) ? block : undefined;
};

/** The blocks that locators of nodes lie in, with the Sites of these nodes; undefined: a node of no Site. */
const sitesInBlocks = (
  prefix: Prefix,
  nodes: readonly NodeFacts[],
  siteOf: (node: NodeFacts) => Site | undefined,
): readonly (readonly [block: Prefix, site: string | undefined])[] => {
  const found = new Map<string, readonly [Prefix, string | undefined]>();
  for (const node of nodes) {
    if (node.l2Locator === undefined) continue;
    const locator = parsePrefix(node.l2Locator);
    if (!containsPrefix(prefix, locator)) continue;
    const block = prefixOf({ family: 6, value: locator.address }, L2_LOCATOR_BLOCK_BITS);
    const site = siteOf(node)?.metadata.name;
    found.set(`${formatPrefix(block)} ${site ?? ''}`, [block, site]);
  }
  return [...found.values()];
};

/** What may be given to a Site, as far as it matters in which order. */
interface Candidates {
  readonly taken: AddressSet;
  /** Blocks in which nodes of other Sites still have their locators: packets of both would go to one node. */
  readonly ofOthers: readonly Prefix[];
  /** Blocks in which its own nodes have theirs: a Site whose status was lost, as in a restored cluster, is not renumbered. */
  readonly ofItsOwn: readonly Prefix[];
}

const chooseBlock = (prefix: Prefix, { taken, ofOthers, ofItsOwn }: Candidates): Prefix | undefined => {
  const avoided = ofOthers.length === 0 ? taken : taken.union(AddressSet.of(ofOthers));
  return (
    ofItsOwn.toSorted(comparePrefixes).find((block) => !avoided.overlaps(block)) ??
    avoided.firstFreeBlock(prefix, L2_LOCATOR_BLOCK_BITS) ??
    taken.firstFreeBlock(prefix, L2_LOCATOR_BLOCK_BITS)
  );
};

/**
 * A block for each Site. One that stands in a Site's status stays there; of two Sites with the same the older keeps it. To
 * others the first free one is given, blocks with locators of nodes of another Site last.
 */
export const planLocatorBlocks = (
  prefix: Prefix,
  sites: readonly Site[],
  nodes: readonly NodeFacts[],
): LocatorBlocks => {
  const index = indexSites(sites);
  const blocks = new Map<string, Prefix>();
  let taken = AddressSet.empty;
  for (const site of index.sites) {
    const block = standingBlock(site, prefix);
    if (!block || taken.overlaps(block)) continue;
    blocks.set(site.metadata.name, block);
    taken = taken.add(block);
  }
  const without = index.sites.map(({ metadata }) => metadata.name).filter((name) => !blocks.has(name));
  const inUse = without.length === 0 ? [] : sitesInBlocks(prefix, nodes, (node) => index.siteOf(node));
  const blocksOf = (isWanted: (site: string | undefined) => boolean): Prefix[] =>
    inUse.filter(([, site]) => isWanted(site)).map(([block]) => block);
  const waiting: string[] = [];
  for (const name of without) {
    const ofOthers = blocksOf((site) => site !== name);
    const block = chooseBlock(prefix, { taken, ofOthers, ofItsOwn: blocksOf((site) => site === name) });
    if (block) {
      blocks.set(name, block);
      taken = taken.add(block);
    } else waiting.push(name);
  }
  return { blocks, waiting, given: without.length - waiting.length };
};
