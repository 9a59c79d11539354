import { annotations } from '@unbounded/crds';
import { containsPrefix, formatPrefix, parsePrefix, type Prefix } from '@unbounded/ip';

import { ageOf } from './age.ts';
import { type Claim, holdersOf } from './claims.ts';
import { annotationField, type NodeFacts } from './node-facts.ts';
import type { NodeProblem } from './node-problem.ts';
import type { SettledNode } from './settled-node.ts';
import { siteBlocks } from './site-blocks.ts';

/** The first of a block is nobody's: a locator must never be written like the block, whose first address it would share. */
const isOf = (block: Prefix, locator: Prefix): boolean =>
  containsPrefix(block, locator) && locator.address !== block.address;

const claimOf = ({ facts, record }: SettledNode, locator: string): Claim => ({
  node: facts.name,
  strength: record.l2Locators.has(locator) ? 1 : 2,
  age: ageOf(facts),
});

const without = (node: SettledNode, problem?: NodeProblem): SettledNode => {
  const { l2Locator: _, ...facts } = node.facts;
  return { ...node, facts: facts satisfies NodeFacts, problems: problem ? [...node.problems, problem] : node.problems };
};

/** A Site without a block has no stretched L2, or not yet: what its nodes state is neither used nor wrong. */
const confine = (node: SettledNode): SettledNode => {
  const { l2Locator } = node.facts;
  if (l2Locator === undefined) return node;
  const block = node.site && siteBlocks(node.site).locators;
  if (!block) return without(node);
  if (isOf(block, parsePrefix(l2Locator))) return node;
  return without(node, {
    reason: 'L2LocatorOutsideSite',
    field: annotationField(annotations.l2Locator),
    message: `${l2Locator} is not a locator of ${formatPrefix(block)}, the block of Site ${node.site.metadata.name}, and is not used: cidr-allocator gives the node another; if it does not, see the condition L2LocatorsAllocated of the Site`,
  });
};

/** Takes from each node the locator that is outside of its Site's block or another's. */
export const settleLocators = (nodes: readonly SettledNode[]): readonly SettledNode[] => {
  if (nodes.every(({ facts }) => facts.l2Locator === undefined)) return nodes;
  const confined = nodes.map(confine);
  const holders = holdersOf(
    confined.flatMap((node) => {
      const { l2Locator } = node.facts;
      return l2Locator === undefined ? [] : [[l2Locator, claimOf(node, l2Locator)] as const];
    }),
  );
  return confined.map((node) => {
    const { l2Locator } = node.facts;
    const holder = l2Locator === undefined ? undefined : holders.get(l2Locator);
    if (holder === undefined || holder === node.facts.name) return node;
    return without(node, {
      reason: 'L2LocatorTaken',
      field: annotationField(annotations.l2Locator),
      message: `${l2Locator} is the locator of node ${holder}, which was listed with it first, and is not used: cidr-allocator gives this node another; if it does not, see the condition L2LocatorsAllocated of the Site`,
    });
  });
};
