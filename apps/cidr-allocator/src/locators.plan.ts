import {
  type GatewayPool,
  L2_LOCATOR_BITS,
  L2_LOCATOR_BLOCK_BITS,
  type Site,
  type SiteNodeSlice,
} from '@unbounded/crds';
import { containsPrefix, formatPrefix, parsePrefix, type Prefix } from '@unbounded/ip';
import { type NodeFacts, type SettledNode, settleNodes } from '@unbounded/membership';

import { planLocatorBlocks } from './locator-blocks.plan.ts';
import { checkLocatorPrefix, type PrefixRefusal } from './locator-prefix.plan.ts';
import { orphansOf } from './orphans.ts';
import type { ClusterAddresses } from './underlay.plan.ts';

/** Everything that locators depend on. */
export interface LocatorWorld {
  /** Of the Mesh; absent: stretched L2 is off. */
  readonly prefix?: string | undefined;
  readonly sites: readonly Site[];
  readonly nodes: readonly NodeFacts[];
  /** Their status and the slices record which node was listed with a locator first. */
  readonly pools?: readonly GatewayPool[];
  readonly slices?: readonly SiteNodeSlice[];
  /** Locators of Nodes that were deleted a moment ago, among other blocks: given only when nothing else is free. */
  readonly cooling?: readonly Prefix[];
  readonly cluster?: ClusterAddresses;
}

/** Nodes that wait for a locator. */
export interface LocatorShortage {
  readonly site: string;
  /** The Site's block, which is full; undefined: the prefix is, and the Site has none. */
  readonly block?: string;
  readonly nodes: readonly string[];
}

export interface LocatorPlan {
  readonly prefix?: string;
  /** What the status of each Site is to show; a Site that is not here has no block. */
  readonly blocks: ReadonlyMap<string, string>;
  /** What the annotation of each node is to be; undefined: none. What a node has that is not here stays as it is. */
  readonly locators: ReadonlyMap<string, string | undefined>;
  /** Something is given that no object shows yet. */
  readonly isGiving: boolean;
  readonly shortages: readonly LocatorShortage[];
  readonly refusal?: PrefixRefusal;
}

const byAge = (a: NodeFacts, b: NodeFacts): number => {
  const [x, y] = [`${a.createdAt} ${a.name}`, `${b.createdAt} ${b.name}`];
  return x < y ? -1 : x > y ? 1 : 0;
};

const withBlock = (site: Site, block: Prefix | undefined): Site => {
  const l2LocatorBlock = block && formatPrefix(block);
  if (site.status?.l2LocatorBlock === l2LocatorBlock) return site;
  const { l2LocatorBlock: _, ...status } = site.status ?? {};
  return { ...site, status: l2LocatorBlock === undefined ? status : { ...status, l2LocatorBlock } };
};

/** First addresses of locators. */
interface Occupied {
  /** In use: never given again. */
  readonly taken: Set<bigint>;
  /** What is given only when nothing else is left: stated by nodes that may not use it, or just released. */
  readonly avoided: ReadonlySet<bigint>;
  /** By node: what was listed for it, and which nobody released: it lost its annotation. */
  readonly former: ReadonlyMap<string, Prefix>;
}

const addressesOf = (prefixes: readonly Prefix[]): Set<bigint> =>
  new Set(
    prefixes.filter(({ family, length }) => family === 6 && length === L2_LOCATOR_BITS).map(({ address }) => address),
  );

const occupiedBy = (world: LocatorWorld, settled: readonly SettledNode[]): Occupied => {
  const locatorsOf = ({ l2Locator }: NodeFacts): Prefix[] => (l2Locator === undefined ? [] : [parsePrefix(l2Locator)]);
  const orphans = orphansOf(
    world,
    ({ l2Locators }) => l2Locators,
    ({ l2Locator }) => (l2Locator === undefined ? [] : [l2Locator]),
  );
  const released = addressesOf(world.cooling ?? []);
  return {
    taken: addressesOf(settled.flatMap(({ facts }) => locatorsOf(facts))),
    avoided: addressesOf([...world.nodes.flatMap(locatorsOf), ...orphans.map(([, locator]) => locator)]).union(
      released,
    ),
    former: new Map(orphans.filter(([, { address }]) => !released.has(address))),
  };
};

const LOCATORS_OF_BLOCK = 1n << BigInt(L2_LOCATOR_BITS - L2_LOCATOR_BLOCK_BITS);

/** The free locators of a block, each marked as taken when it is handed out. The first /64 is nobody's: it would have the block's own address. */
function* freeLocators(block: Prefix, { taken, avoided }: Occupied): Generator<Prefix, undefined> {
  for (const isFree of [
    (value: bigint) => !avoided.has(value) && !taken.has(value),
    (value: bigint) => !taken.has(value),
  ]) {
    for (let index = 1n; index < LOCATORS_OF_BLOCK; index++) {
      const address = block.address + (index << BigInt(128 - L2_LOCATOR_BITS));
      if (!isFree(address)) continue;
      taken.add(address);
      yield { family: 6, address, length: L2_LOCATOR_BITS };
    }
  }
  return undefined;
}

/** What each node of a Site is to have: what it keeps, or the first free one of its Site's block, older nodes first. */
const give = (settled: readonly SettledNode[], blocks: ReadonlyMap<string, Prefix>, occupied: Occupied) => {
  const locators = new Map<string, string | undefined>();
  const waiting = new Map<string, string[]>();
  const free = new Map([...blocks].map(([site, block]) => [site, freeLocators(block, occupied)]));
  /** What the node had a moment ago: whoever took its annotation away changes nothing. */
  const again = (node: string, site: string): Prefix | undefined => {
    const [block, former] = [blocks.get(site), occupied.former.get(node)];
    if (!block || !former || !containsPrefix(block, former) || former.address === block.address) return undefined;
    if (occupied.taken.has(former.address)) return undefined;
    occupied.taken.add(former.address);
    return former;
  };
  let given = 0;
  for (const { facts, site } of settled.toSorted((a, b) => byAge(a.facts, b.facts))) {
    if (!site) continue;
    const { name } = site.metadata;
    const next = facts.l2Locator === undefined ? (again(facts.name, name) ?? free.get(name)?.next().value) : undefined;
    if (next) given++;
    const locator = next ? formatPrefix(next) : facts.l2Locator;
    locators.set(facts.name, locator);
    if (locator !== undefined) continue;
    const others = waiting.get(name);
    if (others) others.push(facts.name);
    else waiting.set(name, [facts.name]);
  }
  return { locators, waiting, given };
};

const nothingGiven = (world: LocatorWorld): Pick<LocatorPlan, 'blocks' | 'locators'> => ({
  blocks: new Map(
    world.sites.flatMap(({ metadata, status }) =>
      status?.l2LocatorBlock === undefined ? [] : [[metadata.name, status.l2LocatorBlock]],
    ),
  ),
  locators: new Map(),
});

/**
 * A block for each Site and a locator for each node in one. The state is the objects themselves, so a new leader needs no
 * bookkeeping; the order of the input does not matter. Unlike pod CIDRs a locator can be changed: a node that moves to another
 * Site, and one that states another's, gets a new one.
 */
export const planLocators = (world: LocatorWorld): LocatorPlan => {
  const { prefix: text, sites, nodes, pools = [], slices = [], cluster = { apiServers: [], services: [] } } = world;
  if (text === undefined) {
    const locators = new Map(nodes.map(({ name }) => [name, undefined]));
    return { blocks: new Map(), locators, isGiving: false, shortages: [] };
  }
  const prefix = checkLocatorPrefix(text, sites, cluster);
  // What stands goes on: it is the giving that would spread what is wrong.
  if ('reason' in prefix)
    return { prefix: text, ...nothingGiven(world), isGiving: false, shortages: [], refusal: prefix };
  const { blocks, waiting: unserved, given } = planLocatorBlocks(prefix, sites, nodes);
  const planned = sites.map((site) => withBlock(site, blocks.get(site.metadata.name)));
  const settled = settleNodes({ sites: planned, nodes, pools, slices });
  const { locators, waiting, given: givenLocators } = give(settled, blocks, occupiedBy(world, settled));
  const short = [...new Set([...unserved, ...waiting.keys()])].toSorted();
  const texts = new Map([...blocks].map(([site, block]) => [site, formatPrefix(block)]));
  return {
    prefix: text,
    blocks: texts,
    locators,
    isGiving: given + givenLocators > 0,
    shortages: short.map((site) => {
      const block = texts.get(site);
      return { site, ...(block === undefined ? {} : { block }), nodes: waiting.get(site) ?? [] };
    }),
  };
};
