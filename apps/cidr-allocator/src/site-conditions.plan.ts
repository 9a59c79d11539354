import type { Site } from '@unbounded/crds';
import { listed } from '@unbounded/membership';

import type { AllocationPlan } from './allocation.plan.ts';

interface SiteCondition {
  readonly type: 'PodCIDRsAvailable' | 'PodCIDRsValid';
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
}

const available = ({ metadata, spec }: Site, plan: AllocationPlan): Omit<SiteCondition, 'observedGeneration'> => {
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

/** What a Site's status says about its pod blocks. */
export const planSiteConditions = (site: Site, plan: AllocationPlan): readonly SiteCondition[] => {
  const generation = site.metadata.generation;
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  return [available(site, plan), valid(site, plan)].map((condition) => ({ ...condition, ...observed }));
};
