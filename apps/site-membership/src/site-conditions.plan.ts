import type { Site, SitePeering } from '@unbounded/crds';
import { listed } from '@unbounded/membership';

import type { NodeFinding, PeeringPlan, SitePlan } from './membership.plan.ts';
import { NODE_CONDITION } from './node-conditions.plan.ts';

const observed = ({ metadata }: Site | SitePeering) =>
  metadata.generation === undefined ? {} : { observedGeneration: metadata.generation };

/** Why a deleted Site is still there; nothing for one that is not deleted. */
const deletability = ({ site, members }: SitePlan) => {
  if (site.metadata.deletionTimestamp === undefined || members.length === 0) return [];
  const message = `members: ${listed(members)}; the Site goes when no node has an internal address in spec.nodeCidrs any more`;
  return [{ type: 'Deletable', status: 'False', reason: 'InUse', message, ...observed(site) } as const];
};

const siteCondition = ({ site, overlaps }: SitePlan) => {
  const type = 'NodeCidrsValid';
  if (overlaps.length === 0) {
    return {
      type,
      status: 'True',
      reason: 'Valid',
      message: 'no earlier Site has the same addresses',
      ...observed(site),
    } as const;
  }
  const texts = overlaps.map(({ cidr, earlier, earlierCidr }) => `${cidr} overlaps ${earlierCidr} of Site ${earlier}`);
  const message = `${texts.join(', ')}: nodes with an address in both belong to the other Site; use blocks of its own`;
  return { type, status: 'False', reason: 'NodeCidrsOverlap', message, ...observed(site) } as const;
};

export const peeringCondition = ({ peering, missing }: PeeringPlan) => {
  const type = 'Accepted';
  return missing.length === 0
    ? ({ type, status: 'True', reason: 'Accepted', message: 'all sites exist', ...observed(peering) } as const)
    : ({
        type,
        status: 'False',
        reason: 'SiteNotFound',
        message: `no such Site: ${missing.join(', ')}; the others are peered`,
        ...observed(peering),
      } as const);
};

const describe = ({ node, problems }: NodeFinding): string =>
  `${node} (${[...new Set(problems.map(({ reason }) => reason))].join(', ')})`;

/** Which nodes of the Site state something that is not used. The Node's own condition has the details. */
const acceptance = ({ site, members, findings }: SitePlan) => {
  const type = 'NodesAccepted';
  if (findings.length === 0) {
    const message = 'all facts of the nodes are accepted';
    return { type, status: 'True', reason: 'Accepted', message, ...observed(site) } as const;
  }
  const message = `${findings.length} of ${members.length} nodes have rejected facts: ${listed(findings.map(describe))}; see the condition ${NODE_CONDITION} of each Node`;
  return { type, status: 'False', reason: findings[0]!.problems[0]!.reason, message, ...observed(site) } as const;
};

/** What a Site's status says about its nodes. */
export const planSiteConditions = (plan: SitePlan) => [siteCondition(plan), acceptance(plan), ...deletability(plan)];
