import type { GatewayPool, Site, SiteNodeSlice } from '@unbounded/crds';
import { AddressSet, type Family, formatPrefix, hostPrefix, type Prefix, tryParsePrefix } from '@unbounded/ip';
import { type NodeFacts, type SettledNode, settleNodes, widestGivenIn } from '@unbounded/membership';

import { type Assignment, type AssignmentProblem, type FamilyPools, parseAssignments } from './assignment.plan.ts';
import { type BlockConflict, findConflicts } from './block-conflicts.plan.ts';
import { orphansOf } from './orphans.ts';
import { type ClusterAddresses, planUnderlayConflicts, type UnderlayConflict } from './underlay.plan.ts';

/** Everything an allocation depends on. */
export interface AllocationWorld {
  readonly sites: readonly Site[];
  readonly nodes: readonly NodeFacts[];
  /** Their status and the slices record which node was listed with a block first. */
  readonly pools?: readonly GatewayPool[];
  readonly slices?: readonly SiteNodeSlice[];
  /** Blocks of Nodes that were deleted a moment ago: given only when nothing else is free. */
  readonly cooling?: readonly Prefix[];
  /** What no pod's block may hold, besides addresses of nodes. */
  readonly cluster?: ClusterAddresses;
}

/** Blocks for one node: IPv4 first, as `spec.podCIDRs` wants it. */
export interface Allocation {
  readonly node: string;
  readonly site: string;
  readonly podCIDRs: readonly string[];
}

/** An assignment without a free block, and who waits for one. */
export interface Exhaustion {
  readonly site: string;
  readonly assignmentIndex: number;
  readonly family: Family;
  readonly pools: readonly string[];
  readonly blockLength: number;
  readonly nodes: readonly string[];
}

export interface AllocationPlan {
  readonly allocations: readonly Allocation[];
  readonly exhaustions: readonly Exhaustion[];
  /** By Site: nodes without blocks that no enabled assignment is for. */
  readonly unmatched: ReadonlyMap<string, readonly string[]>;
  /** Nodes whose blocks overlap; nothing is changed about them. */
  readonly nodeConflicts: readonly BlockConflict[];
  /** Sites whose pools overlap; allocation stays safe, because a taken address is taken everywhere. */
  readonly siteConflicts: readonly BlockConflict[];
  readonly problems: ReadonlyMap<string, readonly AssignmentProblem[]>;
  /** Blocks of Sites that hold addresses of the cluster itself. */
  readonly underlayConflicts: readonly UnderlayConflict[];
}

const byAge = (a: NodeFacts, b: NodeFacts): number => {
  const [x, y] = [`${a.createdAt} ${a.name}`, `${b.createdAt} ${b.name}`];
  return x < y ? -1 : x > y ? 1 : 0;
};

/** Which addresses are not free. */
interface Occupied {
  /** A block is taken from what the first of these leaves free, or else the next; what the last one has is never given. */
  readonly levels: readonly AddressSet[];
  /** Holds addresses of the cluster itself. */
  readonly isForbidden: (pool: Prefix) => boolean;
}

/** Takes the first free block, pool after pool; of those to be avoided only when there is no other. */
const takeBlock = ({ levels, isForbidden }: Occupied, { pools, blockLength }: FamilyPools): Prefix | undefined => {
  for (const level of levels) {
    for (const pool of pools) {
      const block = isForbidden(pool) ? undefined : level.firstFreeBlock(pool, blockLength);
      if (block) return block;
    }
  }
  return undefined;
};

/** A block of every family, or the family that has none left: a node's blocks cannot be added to later. */
const takeBlocks = (occupied: Occupied, { families }: Assignment): readonly Prefix[] | FamilyPools => {
  const blocks: Prefix[] = [];
  for (const family of families) {
    const block = takeBlock(occupied, family);
    if (!block) return family;
    blocks.push(block);
  }
  return blocks;
};

const isFull = (result: readonly Prefix[] | FamilyPools): result is FamilyPools => !Array.isArray(result);

interface Waiting {
  readonly site: string;
  readonly assignment: Assignment;
  readonly family: FamilyPools;
  readonly nodes: string[];
}

const toExhaustion = ({ site, assignment, family, nodes }: Waiting): Exhaustion => ({
  site,
  assignmentIndex: assignment.index,
  family: family.family,
  pools: family.pools.map(formatPrefix),
  blockLength: family.blockLength,
  nodes,
});

/** The shortest block of each family that any Site gives. */
const widestBlocks = (sites: readonly Site[]): Readonly<Record<Family, number>> => {
  const lengths = (wanted: Family): number[] =>
    sites.flatMap((site) =>
      parseAssignments(site).assignments.flatMap(({ families }) =>
        families.filter(({ family }) => family === wanted).map(({ blockLength }) => blockLength),
      ),
    );
  return { 4: Math.min(...lengths(4)), 6: Math.min(...lengths(6)) };
};

const sitePools = (sites: readonly Site[]) =>
  sites.flatMap(({ metadata, spec }) =>
    spec.podCidrAssignments
      .filter(({ assignmentEnabled }) => assignmentEnabled !== false)
      .flatMap(({ cidrBlocks }) => cidrBlocks.flatMap((text) => tryParsePrefix(text) ?? []))
      .map((prefix) => ({
        owner: metadata.name,
        prefix,
        rank: `${metadata.creationTimestamp ?? ''} ${metadata.name}`,
      })),
  );

/**
 * A block that a node may use is taken, and so is every other that is no wider than those given of the same pools: the node may come
 * back into its Site. A wider one that the node may not use takes the pool from nobody, present or just released. Nor does an address that
 * a node states inside a block of pods: blocks around these are given after all others, and those last that were released a moment ago,
 * whose pods may live.
 */
const levelsOf = (world: AllocationWorld, settled: readonly SettledNode[]): AddressSet[] => {
  const widest = widestBlocks(world.sites);
  const isWide = (prefix: Prefix): boolean =>
    prefix.length < (widestGivenIn(world.sites, prefix) ?? widest[prefix.family]);
  const isUsed = ({ site, facts }: SettledNode, prefix: Prefix): boolean =>
    site !== undefined && facts.podPrefixes.includes(prefix);
  const claimed = settled.flatMap((node, index) =>
    world.nodes[index]!.podPrefixes.map((prefix) => ({ prefix, isTaken: isUsed(node, prefix) || !isWide(prefix) })),
  );
  const pools = AddressSet.of(sitePools(world.sites).map(({ prefix }) => prefix));
  const stated = world.nodes.flatMap(({ internalAddresses }) =>
    internalAddresses.filter((address) => pools.has(address)).map(hostPrefix),
  );
  const taken = claimed.filter(({ isTaken }) => isTaken).map(({ prefix }) => prefix);
  const orphans = orphansOf(
    world,
    ({ podCIDRs }) => podCIDRs,
    ({ podPrefixes }) => podPrefixes.map(formatPrefix),
  );
  const released = [...(world.cooling ?? []), ...orphans.map(([, block]) => block)].filter((prefix) => !isWide(prefix));
  const rest = claimed.filter(({ isTaken }) => !isTaken).map(({ prefix }) => prefix);
  return [[...taken, ...released, ...rest, ...stated], [...taken, ...released], taken].map((prefixes) =>
    AddressSet.of(prefixes),
  );
};

const allocate = (
  world: AllocationWorld,
  settled: readonly SettledNode[],
  underlayConflicts: readonly UnderlayConflict[],
) => {
  const forbidden = new Set(underlayConflicts.map(({ cidr }) => cidr));
  let levels = levelsOf(world, settled);
  const isForbidden = (pool: Prefix): boolean => forbidden.has(formatPrefix(pool));
  const allocations: Allocation[] = [];
  const waiting = new Map<string, Waiting>();
  const unmatched = new Map<string, readonly string[]>();
  const waitingNodes = settled.filter(({ facts }) => !facts.hasPodCIDRs).toSorted((a, b) => byAge(a.facts, b.facts));
  for (const { facts: node, site } of waitingNodes) {
    if (!site || site.spec.manageCniPlugin === false) continue;
    const assignment = parseAssignments(site).assignments.find((candidate) => candidate.matches(node.name));
    const { name } = site.metadata;
    if (!assignment) {
      unmatched.set(name, [...(unmatched.get(name) ?? []), node.name]);
      continue;
    }
    const key = `${name}/${assignment.index}`;
    const full = waiting.get(key); // once full, full for all the others of this round
    const result = full?.family ?? takeBlocks({ levels, isForbidden }, assignment);
    if (isFull(result)) {
      if (full) full.nodes.push(node.name);
      else waiting.set(key, { site: name, assignment, family: result, nodes: [node.name] });
      continue;
    }
    if (result.length === 0) continue;
    for (const block of result) levels = levels.map((level) => level.add(block));
    allocations.push({ node: node.name, site: name, podCIDRs: result.map(formatPrefix) });
  }
  return { allocations, exhaustions: [...waiting.values()].map(toExhaustion), unmatched };
};

/**
 * Blocks for the nodes that have none. The state is the nodes themselves: what any node holds is taken, down to the
 * address, so a changed pool or a new leader needs no bookkeeping. Older nodes are served first; the
 * order of the input does not matter.
 */
export const planAllocations = (world: AllocationWorld): AllocationPlan => {
  const { sites, nodes, pools = [], slices = [], cluster = { apiServers: [], services: [] } } = world;
  const settled = settleNodes({ sites, nodes, pools, slices });
  const underlayConflicts = planUnderlayConflicts(sites, settled, pools, cluster);
  return {
    ...allocate(world, settled, underlayConflicts),
    nodeConflicts: settled.flatMap(({ losses }) =>
      losses.map(({ node, prefix, holder, held }) => ({
        owner: node,
        cidr: formatPrefix(prefix),
        other: holder,
        otherCidr: formatPrefix(held),
      })),
    ),
    siteConflicts: findConflicts(sitePools(sites)),
    problems: new Map(sites.map((site) => [site.metadata.name, parseAssignments(site).problems])),
    underlayConflicts,
  };
};
