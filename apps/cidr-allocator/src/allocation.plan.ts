import { type Site } from '@unbounded/crds';
import { AddressSet, type Family, formatPrefix, type Prefix, tryParsePrefix } from '@unbounded/ip';
import { indexSites, type NodeFacts } from '@unbounded/membership';

import { type Assignment, type AssignmentProblem, type FamilyPools, parseAssignments } from './assignment.plan.ts';
import { type BlockConflict, findConflicts } from './block-conflicts.plan.ts';

/** Everything an allocation depends on. */
export interface AllocationWorld {
  readonly sites: readonly Site[];
  readonly nodes: readonly NodeFacts[];
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
}

const byAge = (a: NodeFacts, b: NodeFacts): number => {
  const [x, y] = [`${a.createdAt} ${a.name}`, `${b.createdAt} ${b.name}`];
  return x < y ? -1 : x > y ? 1 : 0;
};

/** Takes the first free block, pool after pool. */
const takeBlock = (taken: AddressSet, { pools, blockLength }: FamilyPools): Prefix | undefined => {
  for (const pool of pools) {
    const block = taken.firstFreeBlock(pool, blockLength);
    if (block) return block;
  }
  return undefined;
};

/** A block of every family, or the family that has none left: a node's blocks cannot be added to later. */
const takeBlocks = (taken: AddressSet, { families }: Assignment): readonly Prefix[] | FamilyPools => {
  const blocks: Prefix[] = [];
  for (const family of families) {
    const block = takeBlock(taken, family);
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

const allocate = ({ sites, nodes }: AllocationWorld) => {
  const index = indexSites(sites);
  let taken = AddressSet.of(nodes.flatMap(({ podPrefixes }) => podPrefixes));
  const allocations: Allocation[] = [];
  const waiting = new Map<string, Waiting>();
  const unmatched = new Map<string, readonly string[]>();
  for (const node of nodes.filter(({ podCIDRs }) => podCIDRs.length === 0).sort(byAge)) {
    const site = index.siteOf(node);
    if (!site || site.spec.manageCniPlugin === false) continue;
    const assignment = parseAssignments(site).assignments.find((candidate) => candidate.matches(node.name));
    const { name } = site.metadata;
    if (!assignment) {
      unmatched.set(name, [...(unmatched.get(name) ?? []), node.name]);
      continue;
    }
    const key = `${name}/${assignment.index}`;
    const full = waiting.get(key); // once full, full for all the others of this round
    const result = full?.family ?? takeBlocks(taken, assignment);
    if (isFull(result)) {
      if (full) full.nodes.push(node.name);
      else waiting.set(key, { site: name, assignment, family: result, nodes: [node.name] });
      continue;
    }
    if (result.length === 0) continue;
    for (const block of result) taken = taken.add(block);
    allocations.push({ node: node.name, site: name, podCIDRs: result.map(formatPrefix) });
  }
  return { allocations, exhaustions: [...waiting.values()].map(toExhaustion), unmatched };
};

const nodeBlocks = (nodes: readonly NodeFacts[]) =>
  nodes.flatMap(({ name, createdAt, podPrefixes }) =>
    podPrefixes.map((prefix) => ({ owner: name, prefix, rank: `${createdAt} ${name}` })),
  );

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
 * Blocks for the nodes that have none. The state is the nodes themselves: what any node holds is taken, down to the
 * address, so a changed pool, a deleted node or a new leader need no bookkeeping. Older nodes are served first; the
 * order of the input does not matter.
 */
export const planAllocations = (world: AllocationWorld): AllocationPlan => ({
  ...allocate(world),
  nodeConflicts: findConflicts(nodeBlocks(world.nodes)),
  siteConflicts: findConflicts(sitePools(world.sites)),
  problems: new Map(world.sites.map((site) => [site.metadata.name, parseAssignments(site).problems])),
});
