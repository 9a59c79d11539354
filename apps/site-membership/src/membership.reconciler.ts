import { inParallel, type Informer, type ObjectWrites, type Reconcile } from '@unbounded/controller-runtime';
import {
  type GatewayPool,
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

import { createFactsDamper, nodeFacts } from '@unbounded/membership';

import { FIELD_MANAGER, PARALLEL_WRITES } from './api-writes.ts';
import { type MembershipPlan, type PeeringPlan, planMembership, type SitePlan } from './membership.plan.ts';
import type { MembershipMetrics } from './membership-metrics.ts';
import { planNodeConditions } from './node-conditions.plan.ts';
import type { NodeWrites } from './node-writes.ts';
import { peeringCondition, planSiteConditions } from './site-conditions.plan.ts';
import { diffSlices } from './slices.plan.ts';

interface MembershipCaches {
  readonly nodes: Informer<Node>;
  readonly sites: Informer<Site>;
  readonly slices: Informer<SiteNodeSlice>;
  readonly pools: Informer<GatewayPool>;
  readonly peerings: Informer<SitePeering>;
}

interface MembershipClients {
  readonly sites: ResourceClient<Site>;
  readonly slices: ResourceClient<SiteNodeSlice>;
  readonly peerings: ResourceClient<SitePeering>;
}

export interface MembershipReconcilerOptions {
  readonly caches: MembershipCaches;
  readonly clients: MembershipClients;
  readonly metrics: MembershipMetrics;
  readonly recorder: EventRecorder;
  readonly writes: ObjectWrites;
  readonly nodeWrites: Pick<NodeWrites, 'plan'>;
  /** Milliseconds on a clock that only goes forward. */
  readonly elapsed?: () => number;
}

const createApply = ({ caches, clients, recorder, writes }: MembershipReconcilerOptions, signal: AbortSignal) => {
  const status = { fieldManager: FIELD_MANAGER, signal, recorder };
  return {
    slices: async ({ sites }: MembershipPlan): Promise<void> => {
      const { create, update, remove } = diffSlices(
        caches.slices.list(),
        sites.flatMap(({ slices }) => slices),
      );
      const attempt = (slice: SiteNodeSlice, write: () => Promise<unknown>) =>
        writes.attempt(slice, 'the slice', write);
      await inParallel(create, PARALLEL_WRITES, (slice) =>
        attempt(slice, () => clients.slices.create(slice, { signal })),
      );
      await inParallel(update, PARALLEL_WRITES, (slice) =>
        attempt(slice, () => clients.slices.update(slice, { signal })),
      );
      await inParallel(remove, PARALLEL_WRITES, (slice) =>
        attempt(slice, () => clients.slices.delete(slice.metadata.name, { signal }).catch(ignoreGone)),
      );
    },
    finalizer: ({ site, members }: SitePlan) =>
      writes.attempt(site, 'the finalizer', () =>
        setFinalizer(clients.sites, site, { name: PROTECTION_FINALIZER, isPresent: members.length > 0, signal }).catch(
          ignoreGone,
        ),
      ),
    siteStatus: (plan: SitePlan): Promise<void> => {
      const fields = { nodeCount: plan.nodeCount, sliceCount: plan.slices.length };
      return writes.attempt(plan.site, 'the status', () =>
        applyStatus(clients.sites, plan.site, { fields, conditions: planSiteConditions(plan) }, status).catch(
          ignoreGone,
        ),
      );
    },
    peeringStatus: (plan: PeeringPlan): Promise<void> => {
      const fields = { peeredSiteCount: plan.peeredSiteCount, totalNodeCount: plan.totalNodeCount };
      return writes.attempt(plan.peering, 'the status', () =>
        applyStatus(clients.peerings, plan.peering, { fields, conditions: [peeringCondition(plan)] }, status).catch(
          ignoreGone,
        ),
      );
    },
  };
};

/** One key stands for the cluster: a node that changes its site changes two sites. */
export const membershipReconciler = (options: MembershipReconcilerOptions): Reconcile => {
  const { caches, metrics, writes, nodeWrites, elapsed = () => performance.now() } = options;
  const damper = createFactsDamper(elapsed);
  return async (_key, signal) => {
    const nodes = caches.nodes.list();
    const pools = caches.pools.list();
    const { standing, damped, nextMs } = damper.accept(
      nodes.map((node) => ({ facts: nodeFacts(node) })),
      pools,
    );
    const plan = planMembership({
      sites: caches.sites.list(),
      pools,
      peerings: caches.peerings.list(),
      slices: caches.slices.list(),
      nodes: standing.map(({ facts }) => facts),
    });
    metrics.state(plan, damped.size);
    nodeWrites.plan({
      nodes: new Map(nodes.map((node) => [node.metadata.name, node])),
      labels: plan.labels,
      conditions: planNodeConditions(nodes, plan.findings),
    });
    const apply = createApply(options, signal);
    // Protection first: a site must not vanish while its nodes are being recorded.
    await inParallel(
      plan.sites.filter(({ members }) => members.length > 0),
      PARALLEL_WRITES,
      apply.finalizer,
    );
    await apply.slices(plan);
    await inParallel(plan.sites, PARALLEL_WRITES, apply.siteStatus);
    await inParallel(plan.peerings, PARALLEL_WRITES, apply.peeringStatus);
    await inParallel(
      plan.sites.filter(({ members }) => members.length === 0),
      PARALLEL_WRITES,
      apply.finalizer,
    );
    return writes.verdict(nextMs);
  };
};
