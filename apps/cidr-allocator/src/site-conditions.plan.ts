import { L2_LOCATOR_BITS, L2_LOCATOR_BLOCK_BITS, MESH_NAME, type Site } from '@unbounded/crds';
import { listed } from '@unbounded/membership';

import type { Allocation, AllocationPlan } from './allocation.plan.ts';
import type { LocatorPlan, LocatorShortage } from './locators.plan.ts';

/** Only with stretched L2: without it the condition is withdrawn. */
export const LOCATORS_ALLOCATED = 'L2LocatorsAllocated';

interface SiteCondition {
  readonly type: 'PodCIDRsAvailable' | 'PodCIDRsValid' | typeof LOCATORS_ALLOCATED;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
}

const available = (
  { metadata, spec }: Site,
  plan: AllocationPlan,
  refused: readonly Allocation[],
): Omit<SiteCondition, 'observedGeneration'> => {
  const type = 'PodCIDRsAvailable';
  if (spec.manageCniPlugin === false) {
    return {
      type,
      status: 'True',
      reason: 'NotManaged',
      message: 'manageCniPlugin is false: nodes get no blocks from here',
    };
  }
  const exhausted = plan.exhaustions.filter(({ site }) => site === metadata.name);
  const unmatched = plan.unmatched.get(metadata.name) ?? [];
  if (exhausted.length === 0 && unmatched.length > 0) {
    const message = `no enabled entry of spec.podCidrAssignments has a nodeRegex that matches: ${listed(unmatched)}`;
    return { type, status: 'False', reason: 'NoMatchingAssignment', message };
  }
  const unwritten = refused.filter(({ site }) => site === metadata.name).map(({ node }) => node);
  if (exhausted.length === 0 && unwritten.length > 0) {
    const message = `the blocks of ${listed(unwritten)} were refused and are tried again: see the Events WriteRefused of these Nodes for the policy or webhook that refuses them`;
    return { type, status: 'False', reason: 'WritesRefused', message };
  }
  if (exhausted.length === 0)
    return { type, status: 'True', reason: 'Available', message: 'no node waits for a block' };
  const message = exhausted
    .map(
      ({ assignmentIndex, blockLength, pools, nodes }) =>
        `no free /${blockLength} in ${pools.join(', ')}: add a block to spec.podCidrAssignments[${assignmentIndex}].cidrBlocks; waiting: ${listed(nodes)}`,
    )
    .join('; ');
  return { type, status: 'False', reason: 'PodCIDRsExhausted', message };
};

const valid = ({ metadata }: Site, plan: AllocationPlan): Omit<SiteCondition, 'observedGeneration'> => {
  const type = 'PodCIDRsValid';
  const [problem] = plan.problems.get(metadata.name) ?? [];
  if (problem) return { type, status: 'False', ...problem };
  const underlay = plan.underlayConflicts.filter(({ site }) => site === metadata.name);
  if (underlay.length > 0) {
    const message = listed(
      underlay.map((conflict) => conflict.message),
      '; ',
    );
    return { type, status: 'False', reason: underlay[0]!.reason, message };
  }
  const overlaps = plan.siteConflicts.filter(({ owner }) => owner === metadata.name);
  if (overlaps.length === 0)
    return { type, status: 'True', reason: 'Valid', message: 'the pools overlap with no other Site’s' };
  const message = listed(
    overlaps.map(({ cidr, other, otherCidr }) => `${cidr} overlaps ${otherCidr} of Site ${other}`),
  );
  return { type, status: 'False', reason: 'PodCIDROverlap', message: `${message}: use blocks of its own` };
};

export const shortageText = ({ block, nodes }: LocatorShortage, prefix: string | undefined): string => {
  const waiting = nodes.length === 0 ? '' : `; waiting: ${listed(nodes)}`;
  return block === undefined
    ? `no free /${L2_LOCATOR_BLOCK_BITS} in ${prefix}, spec.l2.locatorPrefix of Mesh ${MESH_NAME}: write a shorter prefix that holds this one, and the other Sites keep their blocks${waiting}`
    : `no free /${L2_LOCATOR_BITS} in ${block}, the block of this Site: make a second Site of a part of its nodeCidrs${waiting}`;
};

const locatorsAllocated = (
  { metadata }: Site,
  { prefix, blocks, shortages, refusal }: LocatorPlan,
): readonly SiteCondition[] => {
  if (prefix === undefined) return [];
  const type = LOCATORS_ALLOCATED;
  if (refusal) return [{ type, status: 'False', ...refusal }];
  const shortage = shortages.find(({ site }) => site === metadata.name);
  if (!shortage) {
    const message = `no node waits for a locator of ${blocks.get(metadata.name)}`;
    return [{ type, status: 'True', reason: 'Allocated', message }];
  }
  const reason = shortage.block === undefined ? 'LocatorPrefixExhausted' : 'L2LocatorsExhausted';
  return [{ type, status: 'False', reason, message: shortageText(shortage, prefix) }];
};

/**
 * What a Site's status says about its pod blocks and its locators.
 * @param refused what was to be written, and was not taken
 */
export const planSiteConditions = (
  site: Site,
  plan: AllocationPlan,
  locators: LocatorPlan,
  refused: readonly Allocation[] = [],
): readonly SiteCondition[] => {
  const generation = site.metadata.generation;
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  return [available(site, plan, refused), valid(site, plan), ...locatorsAllocated(site, locators)].map((condition) => ({
    ...condition,
    ...observed,
  }));
};
