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

/** How many nodes of a Site have their locators in a block; undefined: of no Site. */
interface Use {
  readonly block: Prefix;
  readonly site: string | undefined;
  readonly nodes: number;
}

const usesOf = (
  prefix: Prefix,
  nodes: readonly NodeFacts[],
  siteOf: (node: NodeFacts) => Site | undefined,
): readonly Use[] => {
  const found = new Map<string, Use>();
  for (const node of nodes) {
    if (node.l2Locator === undefined) continue;
    const locator = parsePrefix(node.l2Locator);
    if (!containsPrefix(prefix, locator)) continue;
    const block = prefixOf({ family: 6, value: locator.address }, L2_LOCATOR_BLOCK_BITS);
    const site = siteOf(node)?.metadata.name;
    const key = `${formatPrefix(block)} ${site ?? ''}`;
    found.set(key, { block, site, nodes: (found.get(key)?.nodes ?? 0) + 1 });
  }
  return [...found.values()];
};

/**
 * A Site whose status was lost, as in a restored cluster, is not renumbered: it gets the block in which most of its nodes have their locators,
 * if others have fewer there, which are avoided one by one. Blocks with locators of others come last: packets of both would go to
 * one node.
 */
const chooseBlock = (prefix: Prefix, taken: AddressSet, uses: readonly Use[], site: string): Prefix | undefined => {
  const [own, others] = [true, false].map((isOwn) => uses.filter((use) => (use.site === site) === isOwn)) as [
    Use[],
    Use[],
  ];
  const foreignIn = (block: Prefix): number =>
    others.reduce((sum, use) => sum + (comparePrefixes(use.block, block) === 0 ? use.nodes : 0), 0);
  const former = own
    .toSorted((a, b) => b.nodes - a.nodes || comparePrefixes(a.block, b.block))
    .find(({ block, nodes }) => !taken.overlaps(block) && nodes > foreignIn(block));
  if (former) return former.block;
  const avoided = taken.union(AddressSet.of(others.map(({ block }) => block)));
  return avoided.firstFreeBlock(prefix, L2_LOCATOR_BLOCK_BITS) ?? taken.firstFreeBlock(prefix, L2_LOCATOR_BLOCK_BITS);
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
  const uses = without.length === 0 ? [] : usesOf(prefix, nodes, (node) => index.siteOf(node));
  const waiting: string[] = [];
  for (const name of without) {
    const block = chooseBlock(prefix, taken, uses, name);
    if (block) {
      blocks.set(name, block);
      taken = taken.add(block);
    } else waiting.push(name);
  }
  return { blocks, waiting, given: without.length - waiting.length };
};
