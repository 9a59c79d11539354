import { comparePrefixes, formatPrefix, overlaps, type Prefix } from '@unbounded/ip';
import type { LocalNode } from '../links/local-node.ts';
import type { NodePlan } from '../plan.ts';
import type { World } from '../world/world.ts';
import { servedSites } from './distances.ts';
import { nearBlocks, ownRoutedBlocks } from './near.ts';

/** What never leaves by the default route, and what is reached past the overlay. */

/**
 * The pods of all sites whose addresses are ours to give, and at a gateway the nodes of the sites it serves from another network.
 */
const containedBlocks = (world: World, local: LocalNode): Prefix[] => {
  const pods = [...world.sites.values()].filter(({ manageCni }) => manageCni).flatMap(({ podCidrs }) => podCidrs);
  const locators = [...world.sites.values()].flatMap(({ locatorBlock }) => locatorBlock ?? []);
  const { pool } = local.member;
  if (pool === undefined) return [...pods, ...locators];
  const near = nearBlocks(world, local);
  const nodes = servedSites(world, pool)
    .flatMap((name) => world.sites.get(name)?.nodeCidrs ?? [])
    .filter((block) => !near.some((own) => overlaps(own, block)));
  return [...pods, ...locators, ...nodes];
};

/** The node's own pods, the networks of nodes that it is in, and what it routes itself beyond the cluster. */
const directBlocks = (world: World, local: LocalNode): Prefix[] => [
  ...local.member.podCidrs,
  ...(local.member.locator ? [local.member.locator] : []), // where it goes the section for stretched L2 decides
  ...nearBlocks(world, local),
  ...ownRoutedBlocks(world, local),
];

const textsOf = (prefixes: readonly Prefix[]): string[] => [
  ...new Set(prefixes.toSorted(comparePrefixes).map(formatPrefix)),
];

export const planContainment = (world: World, local: LocalNode): Pick<NodePlan, 'contained' | 'direct'> => ({
  contained: textsOf(containedBlocks(world, local)),
  direct: textsOf(directBlocks(world, local)),
});
