import type { AdvertisedRoute } from '@unbounded/crds';
import { formatPrefix, tryParsePrefix } from '@unbounded/ip';
import type { Logger } from '@unbounded/telemetry';
import {
  advertisedRoutes,
  isNative,
  type Holding,
  type NodePlan,
  parseWorld,
  planNode,
  type Problem,
  type LocalNode,
  nodeAddresses,
  nodeLocators,
  type NodeAddresses,
  type World,
  withoutProtected,
} from '@unbounded/topology';
import { keepPlan, readKeptPlan } from './kept-plan.ts';
import { findLocalNode, missingSite } from './local-node.ts';
import type { Measured, OwnKeys } from './measured.ts';
import { createTransitions } from './transitions.ts';
import type { OverlayPeers } from '../kernel/overlay-peers.ts';
import type { NodeFacts } from '../world/object-files.ts';
import type { KeptSection } from '../section.port.ts';
import { API_SERVER } from '../world/api-addresses.ts';
import type { Snapshot, WorldSource } from '../world/source.port.ts';

/** Keeps the node's plan: made anew when anything changed that it is made from, and the last good one otherwise. */
export interface NodePlanner {
  /** What the kernel is to hold now: on the way to a plan with other protocols, a step between. */
  readonly plan: NodePlan | undefined;
  /** Milliseconds until `plan` is another by the clock alone; undefined: it stays. */
  readonly nextStepMs: number | undefined;
  /** Of a gateway: what it tells of the blocks behind it; undefined until objects were read. */
  readonly advertised: Readonly<Record<string, AdvertisedRoute>> | undefined;
  /** The plan is made of the objects and of what was measured as they were at the last `replan`: it is no kept one. */
  readonly isCurrent: boolean;
  /** Why the objects as they are give no plan; the last one, if there is any, stays and has them too. */
  readonly problems: readonly Problem[];
  /** The overlay as other sections may know it; undefined: no objects have been read, the plan is a kept one. */
  readonly peers: OverlayPeers | undefined;
  /** What the Node says, as of the last `replan`; undefined: it is not there, or the objects are away. */
  readonly node: NodeFacts | undefined;
  /** Addresses of the Node as the objects say now, else that of the kept plan. */
  readonly internalIps: readonly string[];
  /** While the objects are away the last plan stands. */
  replan(measured: Measured): void;
}

export interface PlannerParts {
  readonly nodeName: string;
  readonly protocols: readonly string[];
  readonly source: WorldSource;
  /** Where the last good plan is. */
  readonly kept: KeptSection;
  readonly logger: Logger;
  /** Milliseconds on a clock that only goes forward: that of the steps between plans. */
  readonly now?: () => number;
}

/** What the node has by itself comes before what the last plan shows. */
const ownHolding = (nodeName: string, { publicKey, nextPublicKey }: OwnKeys, node: NodeFacts | undefined): Holding => ({
  node: nodeName,
  keys: [publicKey, ...(nextPublicKey === undefined ? [] : [nextPublicKey])],
  blocks: (node?.podCidrs ?? []).flatMap((text) => tryParsePrefix(text) ?? []).map(formatPrefix),
  addresses: [],
});

/** The same for the same values, in whatever order they came. */
const textOf = ({ underlay, pathMtuBytes, keys, established, protectedAddresses }: Measured): string =>
  JSON.stringify([
    underlay,
    [...pathMtuBytes].sort(([a], [b]) => (a < b ? -1 : 1)),
    keys,
    [...established].sort(),
    protectedAddresses,
  ]);

interface Made {
  readonly plan: NodePlan;
  readonly advertised: NodePlanner['advertised'];
  readonly peers: OverlayPeers;
}

const overlayPeers = (plan: NodePlan, world: World, { protectedAddresses }: Measured): OverlayPeers => {
  let nodes: readonly NodeAddresses[] | undefined;
  let locators: ReadonlyMap<string, string> | undefined;
  const { podCidrs, mtuBytes, masquerade } = plan;
  return {
    overlayAddresses: plan.overlayAddresses.map((text) => text.slice(0, text.indexOf('/'))),
    mtuBytes,
    podCidrs,
    keepsSource: [...masquerade.sources, ...masquerade.exceptTo],
    apiServer: protectedAddresses.filter(({ role }) => role === API_SERVER).map(({ address }) => address),
    locator: plan.locators?.own,
    native: plan.blocks.filter(({ to }) => isNative(to)).map(({ prefix }) => prefix),
    routed: plan.blocks.filter(({ use }) => use !== 'accepted').map(({ prefix }) => prefix),
    locators: () => (locators ??= nodeLocators(world)),
    nodes: () => (nodes ??= nodeAddresses(world)),
  };
};

const PLAN_FAILED = 'PlanFailed';

/** The plan of the objects, or why there is none. One that cannot be made is tried again; meanwhile the kernel is kept in repair. */
const makePlan = (
  parts: PlannerParts,
  snapshot: Snapshot,
  measured: Measured,
  before: NodePlan | undefined,
): Made | Problem => {
  const { nodeName, logger } = parts;
  try {
    const held = [ownHolding(nodeName, measured.keys, snapshot.node), ...(before?.holdings ?? [])];
    const world = parseWorld(snapshot.objects, held);
    const local = findLocalNode(snapshot, world, { ...parts, ...measured });
    const missing = 'reason' in local ? local : missingSite(before, local, world);
    if (missing) return missing;
    const plan = planNode(world, local as LocalNode);
    return {
      plan,
      advertised: plan.role === 'gateway' ? advertisedRoutes(world, nodeName) : undefined,
      peers: overlayPeers(plan, world, measured),
    };
  } catch (error) {
    logger.debug({ err: error }, 'planning failed');
    const message = `planning failed: ${(error as Error).message}: the last plan stays in effect; the agent retries`;
    return { reason: PLAN_FAILED, message };
  }
};

export const createNodePlanner = (parts: PlannerParts): NodePlanner => {
  const { source, kept, logger, now = () => performance.now() } = parts;
  const transitions = createTransitions(now);
  let plan = readKeptPlan(kept, logger);
  let isKept = plan !== undefined;
  if (plan) transitions.to(plan);
  /** The last plan goes on, with a reason. */
  const hold = (problem: Problem): void => {
    isListed = false;
    problems = [problem];
    if (plan) transitions.to({ ...plan, problems: [...plan.problems, problem] });
  };
  let advertised: NodePlanner['advertised'];
  let peers: OverlayPeers | undefined;
  let plannedFrom = '';
  let problems: readonly Problem[] = [];
  let [isThere, isListed] = [false, false];
  let node: NodeFacts | undefined;
  return {
    get plan() {
      return transitions.effective();
    },
    get nextStepMs() {
      return transitions.nextStepMs();
    },
    get advertised() {
      return advertised;
    },
    get isCurrent() {
      return isThere && isListed;
    },
    get problems() {
      return problems;
    },
    get peers() {
      return peers;
    },
    get node() {
      return node;
    },
    get internalIps() {
      const known = (node ?? source.snapshot()?.node)?.internalIps;
      return known ?? (plan && plan.underlayIp !== '' ? [plan.underlayIp] : []);
    },
    replan(measured) {
      const snapshot = source.snapshot();
      node = snapshot?.node;
      isThere = snapshot !== undefined;
      const from = snapshot && `${snapshot.version} ${textOf(measured)}`;
      if (plan && isKept) {
        const cleaned = withoutProtected(plan, measured.protectedAddresses);
        if (cleaned !== plan) transitions.to(cleaned);
        plan = cleaned;
      }
      if (!snapshot || from === undefined || from === plannedFrom) return;
      const before = plan;
      const made = makePlan(parts, snapshot, measured, plan);
      plannedFrom = 'reason' in made && made.reason === PLAN_FAILED ? '' : from;
      if ('reason' in made) return hold(made);
      ({ plan, advertised, peers } = made);
      [isListed, problems, isKept] = [true, [], false];
      transitions.to(plan);
      keepPlan(kept, plan);
      if (before?.role !== plan.role || before.site !== plan.site)
        logger.info({ site: plan.site, role: plan.role }, 'role assigned');
    },
  };
};
