import { inParallel, type Informer, type ObjectWrites, type Reconcile } from '@unbounded/controller-runtime';
import type {
  GatewayPool,
  GatewayPoolNode,
  GatewayPoolPeering,
  Mesh,
  Site,
  SiteGatewayPoolAssignment,
  SiteNodeSlice,
  SitePeering,
} from '@unbounded/crds';
import type { EventRecord, EventRecorder, Node } from '@unbounded/kube';
import { createFactsDamper, nodeFacts, nodeFingerprint } from '@unbounded/membership';

import type { ExternalNames } from './external-names.ts';
import { createGatewayWrites, type GatewayClients, isGatewayTaint } from './gateways.apply.ts';
import type { ExternalPlan } from './external-addresses.plan.ts';
import { type GatewayNode, type GatewaysPlan, planGateways, resolveNodes } from './gateways.plan.ts';
import type { GatewayMetrics } from './gateway-metrics.ts';
import { createLeavingWatch } from './leaving-gateways.ts';
import { planPoolConditions } from './pool-conditions.plan.ts';
import { createReportWatch } from './report-watch.ts';
import { missingNames } from './reachability.plan.ts';
import { createStatedForwarding, dampedForwardingEvent, whyNotForwarding } from './stated-forwarding.ts';

const PARALLEL_WRITES = 8;
/** How often it is looked at whose report is stale. */
export const LOOK_AGAIN_MS = 10_000;

interface GatewayCaches {
  readonly nodes: Informer<Node>;
  readonly slices: Informer<SiteNodeSlice>;
  readonly sites: Informer<Site>;
  readonly pools: Informer<GatewayPool>;
  readonly poolNodes: Informer<GatewayPoolNode>;
  readonly assignments: Informer<SiteGatewayPoolAssignment>;
  readonly sitePeerings: Informer<SitePeering>;
  readonly poolPeerings: Informer<GatewayPoolPeering>;
  readonly meshes: Informer<Mesh>;
}

export interface GatewayReconcilerOptions {
  readonly caches: GatewayCaches;
  readonly clients: GatewayClients;
  readonly metrics: GatewayMetrics;
  readonly recorder: EventRecorder;
  readonly writes: ObjectWrites;
  readonly names: ExternalNames;
  /** At the latest this long after a round is the next. */
  readonly lookAgainMs: number;
  /** Milliseconds on a clock that only goes forward. */
  readonly elapsed?: () => number;
}

/** NaN: the annotation is there and no port, so it must go or be replaced. */
const annotatedPort = (node: Node): number | undefined => {
  const { wireGuardPort, problems } = nodeFacts(node);
  return wireGuardPort ?? (problems.some(({ reason }) => reason === 'InvalidWireGuardPort') ? Number.NaN : undefined);
};

const toGatewayNode = (node: Node): GatewayNode => ({
  facts: nodeFacts(node),
  annotatedPort: annotatedPort(node),
  isTainted: node.spec?.taints?.some(isGatewayTaint) ?? false,
});

/** Changes only with what this controller reads of a Node. */
export const gatewayNodeFingerprint = (node: Node): string =>
  `${nodeFingerprint(node)} ${annotatedPort(node)} ${JSON.stringify(node.spec?.taints ?? [])} ${whyNotForwarding(node)}`;

/** Of a gateway with DNS names: what changes may be their answers, of which site-membership knows nothing. */
const dampedEvent = (about: Node): EventRecord => ({
  about,
  type: 'Warning',
  reason: 'FactsDamped',
  action: 'ListGateway',
  note: 'what the Node states, or what DNS answers for the names of its annotation external-address, changes too often: changes are taken over late, at most one a minute; what was accepted before stands meanwhile',
});

const eventsOfDamped = (
  { pools }: GatewaysPlan,
  facts: readonly string[],
  forwarding: readonly string[],
  nodes: ReadonlyMap<string, Node>,
): EventRecord[] => {
  const named = new Set(pools.flatMap(({ damped }) => damped));
  return [
    ...facts.filter((name) => named.has(name)).map((name) => dampedEvent(nodes.get(name)!)),
    ...forwarding.map((name) => dampedForwardingEvent(nodes.get(name)!)),
  ];
};

const nameSet = (objects: readonly { readonly metadata: { readonly name: string } }[]): ReadonlySet<string> =>
  new Set(objects.map(({ metadata }) => metadata.name));

/** One key stands for the cluster: ports are unique over all pools, and reachability crosses them. */
export const gatewaysReconciler = ({
  caches,
  clients,
  metrics,
  recorder,
  writes,
  names,
  lookAgainMs,
  elapsed = () => performance.now(),
}: GatewayReconcilerOptions): Reconcile => {
  const reports = createReportWatch(elapsed);
  const damper = createFactsDamper<ExternalPlan>(elapsed);
  const forwarding = createStatedForwarding(elapsed);
  const staying = createLeavingWatch(elapsed);
  const read = () => ({
    nodes: caches.nodes.list(),
    slices: caches.slices.list(),
    sites: caches.sites.list(),
    pools: caches.pools.list(),
    poolNodes: caches.poolNodes.list(),
    assignments: caches.assignments.list(),
    sitePeerings: caches.sitePeerings.list(),
    poolPeerings: caches.poolPeerings.list(),
    meshes: caches.meshes.list(),
  });
  return async (_key, signal) => {
    const world = read();
    const stated = { ...world, nodes: world.nodes.map(toGatewayNode), resolvedOf: (name: string) => names.get(name) };
    const standing = damper.accept(resolveNodes(stated), world.pools);
    const plan = planGateways({ ...stated, standing, staying });
    const said = forwarding(world.nodes);
    names.look(plan.names);
    metrics.state(plan.pools, standing.damped.union(said.damped).size);
    const write = createGatewayWrites({ clients, recorder, writes, signal });
    const nodes = new Map(world.nodes.map((node) => [node.metadata.name, node]));
    for (const event of eventsOfDamped(plan, standing.begun, said.begun, nodes)) recorder.record(event);
    reports.observe(world.poolNodes);
    await inParallel(
      plan.pools.filter(({ gateways }) => gateways.length > 0),
      PARALLEL_WRITES,
      write.poolFinalizer,
    );
    // The status comes before the annotations: it is what keeps a port given when a round ends half-way.
    const heard = { observed: (name: string) => reports.of(name), notForwarding: said.notForwarding };
    await inParallel(plan.pools, PARALLEL_WRITES, (pool) =>
      write.poolStatus(pool, planPoolConditions(pool, world.poolNodes, heard)),
    );
    await inParallel(plan.roles, PARALLEL_WRITES, (role) => write.role(nodes.get(role.node)!, role));
    await write.poolNodes(world.poolNodes, plan.poolNodes);
    const [sites, pools] = [nameSet(world.sites), nameSet(world.pools)];
    await inParallel(world.assignments, PARALLEL_WRITES, (object) => {
      const { spec } = object;
      return write.accepted(object, [...missingNames(spec.sites, sites), ...missingNames(spec.gatewayPools, pools)]);
    });
    await inParallel(world.poolPeerings, PARALLEL_WRITES, (object) =>
      write.accepted(object, missingNames(object.spec.gatewayPools, pools)),
    );
    await inParallel(
      plan.pools.filter(({ gateways }) => gateways.length === 0),
      PARALLEL_WRITES,
      write.poolFinalizer,
    );
    return writes.verdict(
      plan.pools.length === 0 ? undefined : Math.min(lookAgainMs, standing.nextMs ?? Infinity, said.nextMs ?? Infinity),
    );
  };
};
