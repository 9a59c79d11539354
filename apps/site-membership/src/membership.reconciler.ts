import { done, inParallel, type Informer, type Reconcile } from '@unbounded/controller-runtime';
import {
  type GatewayPool,
  labels,
  PROTECTION_FINALIZER,
  type Site,
  type SiteNodeSlice,
  type SitePeering,
} from '@unbounded/crds';
import {
  applyStatus,
  type EventRecorder,
  ignoreGone,
  type Node,
  type ResourceClient,
  setFinalizer,
} from '@unbounded/kube';
import { nodeFacts } from '@unbounded/membership';
import { type Logger } from '@unbounded/telemetry';

import {
  type LabelChange,
  type MembershipPlan,
  type PeeringPlan,
  planMembership,
  type SitePlan,
} from './membership.plan.ts';
import { type MembershipMetrics } from './membership-metrics.ts';
import { diffSlices } from './slices.plan.ts';

const FIELD_MANAGER = 'unbounded-site-membership';
const PARALLEL_WRITES = 8;

export interface MembershipCaches {
  readonly nodes: Informer<Node>;
  readonly sites: Informer<Site>;
  readonly slices: Informer<SiteNodeSlice>;
  readonly pools: Informer<GatewayPool>;
  readonly peerings: Informer<SitePeering>;
}

export interface MembershipClients {
  readonly nodes: ResourceClient<Node>;
  readonly sites: ResourceClient<Site>;
  readonly slices: ResourceClient<SiteNodeSlice>;
  readonly peerings: ResourceClient<SitePeering>;
}

export interface MembershipReconcilerOptions {
  readonly caches: MembershipCaches;
  readonly clients: MembershipClients;
  readonly metrics: MembershipMetrics;
  readonly recorder: EventRecorder;
  readonly logger: Logger;
}

const observed = ({ metadata }: Site | SitePeering) =>
  metadata.generation === undefined ? {} : { observedGeneration: metadata.generation };

const NAMED = 5;

/** Why a deleted Site is still there; nothing for one that is not deleted. */
const deletability = ({ site, members }: SitePlan) => {
  if (site.metadata.deletionTimestamp === undefined || members.length === 0) return [];
  const more = members.length > NAMED ? ` and ${members.length - NAMED} more` : '';
  const names = `${members.slice(0, NAMED).join(', ')}${more}`;
  const message = `members: ${names}; the Site goes when no node has an internal address in spec.nodeCidrs any more`;
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

const peeringCondition = ({ peering, missing }: PeeringPlan) => {
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

const createApply = ({ caches, clients, recorder, logger }: MembershipReconcilerOptions, signal: AbortSignal) => {
  const status = { fieldManager: FIELD_MANAGER, signal, recorder };
  return {
    label: async ({ node, site }: LabelChange): Promise<void> => {
      await clients.nodes.mergePatch(node, { metadata: { labels: { [labels.site]: site ?? null } } }, { signal });
      logger.info({ node, site }, site === undefined ? 'in no site' : 'in site');
    },
    slices: async ({ sites }: MembershipPlan): Promise<void> => {
      const { create, update, remove } = diffSlices(
        caches.slices.list(),
        sites.flatMap(({ slices }) => slices),
      );
      await inParallel(create, PARALLEL_WRITES, async (slice) => void (await clients.slices.create(slice, { signal })));
      await inParallel(update, PARALLEL_WRITES, async (slice) => void (await clients.slices.update(slice, { signal })));
      await inParallel(remove, PARALLEL_WRITES, (name) => clients.slices.delete(name, { signal }).catch(ignoreGone));
    },
    finalizer: ({ site, members }: SitePlan) =>
      setFinalizer(clients.sites, site, { name: PROTECTION_FINALIZER, isPresent: members.length > 0, signal }).catch(
        ignoreGone,
      ),
    siteStatus: async (plan: SitePlan): Promise<void> => {
      const fields = { nodeCount: plan.nodeCount, sliceCount: plan.slices.length };
      const conditions = [siteCondition(plan), ...deletability(plan)];
      await applyStatus(clients.sites, plan.site, { fields, conditions }, status).catch(ignoreGone);
    },
    peeringStatus: async (plan: PeeringPlan): Promise<void> => {
      const fields = { peeredSiteCount: plan.peeredSiteCount, totalNodeCount: plan.totalNodeCount };
      await applyStatus(clients.peerings, plan.peering, { fields, conditions: [peeringCondition(plan)] }, status).catch(
        ignoreGone,
      );
    },
  };
};

/** One key stands for the cluster: a node that changes its site changes two sites. */
export const membershipReconciler =
  (options: MembershipReconcilerOptions): Reconcile =>
  async (_key, signal) => {
    const { caches, metrics } = options;
    const plan = planMembership({
      sites: caches.sites.list(),
      pools: caches.pools.list(),
      peerings: caches.peerings.list(),
      nodes: caches.nodes.list().map(nodeFacts),
    });
    const apply = createApply(options, signal);
    // Protection first: a site must not vanish while its nodes are being recorded.
    await inParallel(
      plan.sites.filter(({ members }) => members.length > 0),
      PARALLEL_WRITES,
      apply.finalizer,
    );
    await inParallel(plan.labels, PARALLEL_WRITES, (change) => apply.label(change).catch(ignoreGone));
    await apply.slices(plan);
    await inParallel(plan.sites, PARALLEL_WRITES, apply.siteStatus);
    await inParallel(plan.peerings, PARALLEL_WRITES, apply.peeringStatus);
    await inParallel(
      plan.sites.filter(({ members }) => members.length === 0),
      PARALLEL_WRITES,
      apply.finalizer,
    );
    metrics.state(plan);
    return done;
  };
