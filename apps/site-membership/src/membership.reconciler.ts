import { inParallel, type Informer, type ObjectWrites, type Reconcile } from '@unbounded/controller-runtime';
import {
  type Condition,
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
  type KubeObject,
  type Node,
  type ResourceClient,
  setFinalizer,
} from '@unbounded/kube';

import { createFactsDamper, nodeFacts } from '@unbounded/membership';
import type { Logger } from '@unbounded/telemetry';

import {
  type LabelChange,
  type MembershipPlan,
  type PeeringPlan,
  planMembership,
  type SitePlan,
} from './membership.plan.ts';
import type { MembershipMetrics } from './membership-metrics.ts';
import { type NodeConditionChange, planNodeConditions } from './node-conditions.plan.ts';
import { peeringCondition, planSiteConditions } from './site-conditions.plan.ts';
import { diffSlices } from './slices.plan.ts';

const FIELD_MANAGER = 'unbounded-site-membership';
const PARALLEL_WRITES = 8;

/** Conditions of a Node are those of our kinds, without observedGeneration. */
type NodeWithConditions = KubeObject & { readonly status?: { readonly conditions?: readonly Condition[] } };

interface MembershipCaches {
  readonly nodes: Informer<Node>;
  readonly sites: Informer<Site>;
  readonly slices: Informer<SiteNodeSlice>;
  readonly pools: Informer<GatewayPool>;
  readonly peerings: Informer<SitePeering>;
}

interface MembershipClients {
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
  readonly writes: ObjectWrites;
  /** Milliseconds on a clock that only goes forward. */
  readonly elapsed?: () => number;
}

const createApply = (
  { caches, clients, recorder, logger, writes }: MembershipReconcilerOptions,
  nodes: ReadonlyMap<string, Node>,
  signal: AbortSignal,
) => {
  const status = { fieldManager: FIELD_MANAGER, signal, recorder };
  return {
    label: async ({ node, site }: LabelChange): Promise<void> => {
      const patch = { metadata: { labels: { [labels.site]: site ?? null } } };
      await writes.attempt(nodes.get(node)!, `label ${labels.site}`, async () => {
        await clients.nodes.mergePatch(node, patch, { signal }).catch(ignoreGone);
        logger.info({ node, site }, site === undefined ? 'in no site' : 'in site');
      });
    },
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
    nodeCondition: ({ node, condition }: NodeConditionChange): Promise<void> =>
      writes.attempt(node, `condition ${condition.type}`, () =>
        applyStatus(
          clients.nodes as unknown as ResourceClient<NodeWithConditions>,
          node as NodeWithConditions,
          { conditions: [condition] },
          status,
        ).catch(ignoreGone),
      ),
  };
};

/** One key stands for the cluster: a node that changes its site changes two sites. */
export const membershipReconciler = (options: MembershipReconcilerOptions): Reconcile => {
  const { caches, metrics, writes, elapsed = () => performance.now() } = options;
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
    const apply = createApply(options, new Map(nodes.map((node) => [node.metadata.name, node])), signal);
    // Protection first: a site must not vanish while its nodes are being recorded.
    await inParallel(
      plan.sites.filter(({ members }) => members.length > 0),
      PARALLEL_WRITES,
      apply.finalizer,
    );
    await inParallel(plan.labels, PARALLEL_WRITES, apply.label);
    await apply.slices(plan);
    await inParallel(plan.sites, PARALLEL_WRITES, apply.siteStatus);
    await inParallel(plan.peerings, PARALLEL_WRITES, apply.peeringStatus);
    await inParallel(planNodeConditions(nodes, plan.findings), PARALLEL_WRITES, apply.nodeCondition);
    await inParallel(
      plan.sites.filter(({ members }) => members.length === 0),
      PARALLEL_WRITES,
      apply.finalizer,
    );
    return writes.verdict(nextMs);
  };
};
