import type { GatewayPool, Site, SiteNodeSlice } from '@unbounded/crds';
import { inParallel, type Informer, type ObjectWrites, type Reconcile } from '@unbounded/controller-runtime';
import { applyStatus, type EventRecorder, ignoreGone, type Node, type ResourceClient } from '@unbounded/kube';
import { createFactsDamper, nodeFacts } from '@unbounded/membership';
import type { Logger } from '@unbounded/telemetry';

import { applyAllocations } from './allocation.apply.ts';
import { type AllocationPlan, type Exhaustion, planAllocations } from './allocation.plan.ts';
import type { AllocatorMetrics } from './allocator-metrics.ts';
import { MAX_AGE_MS } from './cluster-addresses.ts';
import type { Cooldown } from './cooldown.ts';
import { planSiteConditions } from './site-conditions.plan.ts';
import type { ClusterAddresses } from './underlay.plan.ts';

const PARALLEL_WRITES = 8;
const FIELD_MANAGER = 'unbounded-cidr-allocator';

export interface AllocationReconcilerOptions {
  readonly nodes: Informer<Node>;
  readonly sites: Informer<Site>;
  readonly pools: Informer<GatewayPool>;
  readonly slices: Informer<SiteNodeSlice>;
  readonly clusterAddresses: (signal: AbortSignal) => Promise<ClusterAddresses>;
  readonly cooldown: Cooldown;
  readonly writes: ObjectWrites;
  readonly nodeClient: ResourceClient<Node>;
  readonly siteClient: ResourceClient<Site>;
  readonly recorder: EventRecorder;
  readonly metrics: AllocatorMetrics;
  readonly logger: Logger;
  /** Called when an assignment newly has no free block. */
  readonly onExhausted?: (exhaustion: Exhaustion) => void;
  /** Milliseconds on a clock that only goes forward. */
  readonly elapsed?: () => number;
}

/** Tells of what is new since the last round: Events must not be repeated at every heartbeat of the queue. */
const createNews = () => {
  let told = new Set<string>();
  return (keys: readonly string[]): ReadonlySet<string> => {
    const news = new Set(keys.filter((key) => !told.has(key)));
    told = new Set(keys);
    return news;
  };
};

const exhaustionText = ({ site, pools, blockLength }: Exhaustion): string =>
  `Site ${site} has no free /${blockLength} in ${pools.join(', ')}: add a block to the Site`;

/** Logs, counts and records what is new in a plan. */
const createReport = ({ recorder, metrics, logger, onExhausted }: AllocationReconcilerOptions) => {
  const newlyWaiting = createNews();
  const newlyExhausted = createNews();
  const newlyConflicting = createNews();
  return ({ exhaustions, nodeConflicts }: AllocationPlan, byName: ReadonlyMap<string, Node>): void => {
    const exhausted = newlyExhausted(exhaustions.map(({ site, assignmentIndex }) => `${site}/${assignmentIndex}`));
    const waiting = newlyWaiting(exhaustions.flatMap((exhaustion) => exhaustion.nodes));
    for (const exhaustion of exhaustions) {
      const note = exhaustionText(exhaustion);
      const warn = { type: 'Warning', reason: 'PodCIDRsExhausted', action: 'Allocate', note } as const;
      if (exhausted.has(`${exhaustion.site}/${exhaustion.assignmentIndex}`)) {
        metrics.exhausted(exhaustion.site);
        logger.error({ ...exhaustion, nodes: exhaustion.nodes.length }, note);
        onExhausted?.(exhaustion);
      }
      for (const name of exhaustion.nodes) {
        const node = byName.get(name);
        if (node && waiting.has(name)) recorder.record({ about: node, ...warn });
      }
    }
    const conflicting = newlyConflicting(nodeConflicts.map(({ owner, cidr }) => `${owner} ${cidr}`));
    for (const { owner, cidr, other, otherCidr } of nodeConflicts) {
      const about = byName.get(owner);
      if (!about || !conflicting.has(`${owner} ${cidr}`)) continue;
      const note = `${cidr} overlaps ${otherCidr} of node ${other}, which was listed with it first: pods of the two nodes can get the same address; delete the Node object of ${owner} and register the node anew`;
      logger.error({ node: owner, other }, note);
      recorder.record({ about, type: 'Warning', reason: 'PodCIDROverlap', action: 'Audit', note });
    }
    metrics.state(exhaustions, nodeConflicts.length);
  };
};

/** One key stands for the cluster: blocks of one node are free or taken only with a view of all. */
export const allocationReconciler = (options: AllocationReconcilerOptions): Reconcile => {
  const { nodes, sites, pools, slices, nodeClient, siteClient, recorder, metrics, logger, writes } = options;
  const tell = createReport(options);
  // Which blocks hold nodes' addresses stands in the status of Sites: as often as the addresses are listed, and no more.
  const damper = createFactsDamper(options.elapsed ?? (() => performance.now()));
  const plan = (objects: readonly Node[], cluster: ClusterAddresses): AllocationPlan & { readonly nextMs: number } => {
    const stated = objects.map((node) => ({ facts: nodeFacts(node) }));
    const { standing, nextMs = Infinity } = damper.accept(stated, pools.list());
    const planned = planAllocations({
      sites: sites.list(),
      nodes: standing.map(({ facts }) => facts),
      pools: pools.list(),
      slices: slices.list(),
      cooling: options.cooldown.cooling(),
      cluster,
    });
    return { ...planned, nextMs };
  };

  return async (_key, signal) => {
    const cluster = await options.clusterAddresses(signal);
    let objects = nodes.list();
    let current = plan(objects, cluster);
    if (current.allocations.length > 0) {
      objects = await nodeClient.listAll({ signal }); // the cache may not know yet what the last round or leader gave away
      current = plan(objects, cluster);
    }
    const byName = new Map(objects.map((node) => [node.metadata.name, node]));
    tell(current, byName);
    try {
      await applyAllocations(current.allocations, {
        client: nodeClient,
        writes,
        nodes: byName,
        signal,
        onAllocated: (about, { site, podCIDRs }) => {
          metrics.allocated();
          logger.info({ node: about.metadata.name, site, podCIDRs }, 'allocated');
          const note = `got ${podCIDRs.join(', ')} of Site ${site}`;
          recorder.record({ about, type: 'Normal', reason: 'PodCIDRsAllocated', action: 'Allocate', note });
        },
      });
    } finally {
      await inParallel(sites.list(), PARALLEL_WRITES, (site) =>
        writes.attempt(site, 'the status', () =>
          applyStatus(
            siteClient,
            site,
            { conditions: planSiteConditions(site, current) },
            { fieldManager: FIELD_MANAGER, signal, recorder },
          ).catch(ignoreGone),
        ),
      );
    }
    // Nothing watches the addresses of API servers and Services: they are looked at again when they are due.
    return writes.verdict(sites.list().length === 0 ? undefined : Math.min(MAX_AGE_MS, current.nextMs));
  };
};
