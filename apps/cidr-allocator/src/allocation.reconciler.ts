import type { GatewayPool, Mesh, Site, SiteNodeSlice } from '@unbounded/crds';
import { inParallel, type Informer, type ObjectWrites, type Reconcile } from '@unbounded/controller-runtime';
import { applyStatus, type EventRecorder, ignoreGone, type Node, type ResourceClient } from '@unbounded/kube';
import { createFactsDamper, nodeFacts } from '@unbounded/membership';
import type { Logger } from '@unbounded/telemetry';

import { applyAllocations, dueAllocations, refusedAllocations } from './allocation.apply.ts';
import { type Allocation, type AllocationPlan, type Exhaustion, planAllocations } from './allocation.plan.ts';
import type { AllocatorMetrics } from './allocator-metrics.ts';
import { MAX_AGE_MS } from './cluster-addresses.ts';
import type { Cooldown } from './cooldown.ts';
import { locatorPrefixOf } from './locator-prefix.plan.ts';
import { applyLocators, type ApplyLocatorsOptions } from './locators.apply.ts';
import { type LocatorPlan, planLocators } from './locators.plan.ts';
import { LOCATORS_ALLOCATED, planSiteConditions, shortageText } from './site-conditions.plan.ts';
import type { ClusterAddresses } from './underlay.plan.ts';

const PARALLEL_WRITES = 8;
const FIELD_MANAGER = 'unbounded-cidr-allocator';

export interface AllocationReconcilerOptions {
  readonly nodes: Informer<Node>;
  readonly sites: Informer<Site>;
  readonly pools: Informer<GatewayPool>;
  readonly slices: Informer<SiteNodeSlice>;
  readonly meshes: Informer<Mesh>;
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
  return (
    { exhaustions, nodeConflicts }: AllocationPlan,
    byName: ReadonlyMap<string, Node>,
    sites: readonly string[],
  ): void => {
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
    metrics.state(sites, exhaustions, nodeConflicts.length);
  };
};

/** Counts and logs the Sites that newly run out of locators; an Event comes with the condition. */
const createLocatorReport = ({ metrics, logger }: AllocationReconcilerOptions) => {
  const newlyShort = createNews();
  return ({ prefix, shortages }: LocatorPlan, sites: readonly string[]): void => {
    const short = newlyShort(shortages.map(({ site, block }) => `${site} ${block ?? ''}`));
    for (const shortage of shortages) {
      const { site, block, nodes } = shortage;
      if (!short.has(`${site} ${block ?? ''}`)) continue;
      metrics.locatorsExhausted(site);
      logger.error({ site, block, nodes: nodes.length }, shortageText(shortage, prefix));
    }
    metrics.locatorState(prefix === undefined ? [] : sites, shortages);
  };
};

interface Plans {
  readonly blocks: AllocationPlan;
  readonly locators: LocatorPlan;
  readonly nextMs: number;
}

/** The plans for these nodes and Sites; the rest comes from the caches. */
const createPlanner = (options: AllocationReconcilerOptions) => {
  const { pools, slices, meshes, cooldown } = options;
  // Which blocks hold nodes' addresses stands in the status of Sites: as often as the addresses are listed, and no more.
  const damper = createFactsDamper(options.elapsed ?? (() => performance.now()));
  return (objects: readonly Node[], sites: readonly Site[], cluster: ClusterAddresses): Plans => {
    const stated = objects.map((node) => ({ facts: nodeFacts(node) }));
    const { standing, nextMs = Infinity } = damper.accept(stated, pools.list());
    const world = {
      sites,
      nodes: standing.map(({ facts }) => facts),
      pools: pools.list(),
      slices: slices.list(),
      cooling: cooldown.cooling(),
      cluster,
    };
    const prefix = locatorPrefixOf(meshes.list());
    return { blocks: planAllocations(world), locators: planLocators({ ...world, prefix }), nextMs };
  };
};

const byNames = (nodes: readonly Node[]): ReadonlyMap<string, Node> =>
  new Map(nodes.map((node) => [node.metadata.name, node]));

const locatorOptions = (
  { nodeClient: client, metrics, logger, writes }: AllocationReconcilerOptions,
  nodes: readonly Node[],
  signal: AbortSignal,
): ApplyLocatorsOptions => ({
  client,
  writes,
  nodes,
  signal,
  onWritten: ({ metadata }, locator) => {
    if (locator !== undefined) metrics.locatorGiven();
    logger.info({ node: metadata.name, locator }, locator === undefined ? 'locator removed' : 'locator allocated');
  },
});

/** One key stands for the cluster: blocks of one node are free or taken only with a view of all. */
export const allocationReconciler = (options: AllocationReconcilerOptions): Reconcile => {
  const { nodes, sites, nodeClient, siteClient, recorder, metrics, logger, writes } = options;
  const tell = createReport(options);
  const tellLocators = createLocatorReport(options);
  const plan = createPlanner(options);

  const writeBlocks = (current: Plans, byName: ReadonlyMap<string, Node>, signal: AbortSignal): Promise<void> =>
    applyAllocations(current.blocks.allocations, {
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
  const writeStatus = (
    { blocks, locators }: Plans,
    refused: readonly Allocation[],
    site: Site,
    signal: AbortSignal,
  ): Promise<void> =>
    writes.attempt(site, 'the status', () => {
      const conditions = planSiteConditions(site, blocks, locators, refused);
      const fields = { l2LocatorBlock: locators.blocks.get(site.metadata.name) };
      const withdrawn = locators.prefix === undefined ? [LOCATORS_ALLOCATED] : [];
      return applyStatus(
        siteClient,
        site,
        { fields, conditions, withdrawn },
        { fieldManager: FIELD_MANAGER, signal, recorder },
      ).catch(ignoreGone);
    });
  return async (_key, signal) => {
    const cluster = await options.clusterAddresses(signal);
    let objects = nodes.list();
    let siteObjects = sites.list();
    let current = plan(objects, siteObjects, cluster);
    const due = dueAllocations(current.blocks.allocations, { nodes: byNames(objects), writes });
    if (due.length > 0 || current.locators.isGiving) {
      objects = await nodeClient.listAll({ signal }); // the cache may not know yet what the last round or leader gave away
      if (current.locators.isGiving) siteObjects = await siteClient.listAll({ signal }); // their blocks for locators
      current = plan(objects, siteObjects, cluster);
    }
    const byName = byNames(objects);
    const siteNames = siteObjects.map(({ metadata }) => metadata.name);
    tell(current.blocks, byName, siteNames);
    tellLocators(current.locators, siteNames);
    try {
      if (due.length > 0) await writeBlocks(current, byName, signal);
    } finally {
      const refused = refusedAllocations(current.blocks.allocations, { nodes: byName, writes });
      await inParallel(siteObjects, PARALLEL_WRITES, (site) => writeStatus(current, refused, site, signal));
    }
    // Last: a locator counts only inside of the block that its Site's status shows.
    await applyLocators(current.locators, locatorOptions(options, objects, signal));
    // Nothing watches the addresses of API servers and Services: they are looked at again when they are due.
    return writes.verdict(sites.list().length === 0 ? undefined : Math.min(MAX_AGE_MS, current.nextMs));
  };
};
