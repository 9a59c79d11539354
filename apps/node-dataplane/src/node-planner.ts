import type { AdvertisedRoute } from '@unbounded/crds';
import { tryParsePrefix } from '@unbounded/ip';
import type { Logger } from '@unbounded/telemetry';
import {
  advertisedRoutes,
  changedPrefixes,
  type DataplaneKind,
  findMember,
  type LocalNode,
  type NodePlan,
  parseWorld,
  planNode,
  planTransition,
  type World,
} from '@unbounded/topology';
import type { StateFile } from './kernel/state-file.ts';
import type { Underlay } from './kernel/underlay.ts';
import type { Snapshot, WorldSource } from './world/source.port.ts';

/** Keeps the node's plan: made anew when anything changed that it is made from, and the last good one otherwise. */
export interface NodePlanner {
  /** What the kernel is to hold now: on the way to a plan with other protocols, a step between. */
  readonly plan: NodePlan | undefined;
  /** Milliseconds until `plan` is another by the clock alone; undefined: it stays. */
  readonly nextStepMs: number | undefined;
  /** Of a gateway: what it tells of the blocks behind it; undefined until objects were read. */
  readonly advertised: Readonly<Record<string, AdvertisedRoute>> | undefined;
  /** While the objects are away the last plan stands. */
  replan(underlay: Underlay, pathMtuBytes: ReadonlyMap<string, number>): void;
}

export interface PlannerParts {
  readonly nodeName: string;
  readonly publicKey: string;
  readonly protocols: readonly string[];
  readonly dataplaneKind: DataplaneKind;
  readonly source: WorldSource;
  readonly planFile: StateFile<NodePlan>;
  readonly logger: Logger;
  /** Milliseconds; the clock of the steps between plans. */
  readonly now?: () => number;
}

/** What the plan is made for: the member that the objects list, with what the Node itself says. */
const localNode = (
  { node }: Snapshot,
  world: World,
  parts: PlannerParts,
  measured: Pick<LocalNode, 'underlayMtuBytes' | 'pathMtuBytes'>,
): LocalNode | undefined => {
  const listed = findMember(world, parts.nodeName);
  if (!listed || !node) return undefined;
  const podCidrs = node.podCidrs.flatMap((text) => tryParsePrefix(text) ?? []);
  if (podCidrs.length === 0) return undefined;
  const { protocols, publicKey, dataplaneKind } = parts;
  const member = { ...listed, podCidrs, internalIps: node.internalIps, protocols, publicKey };
  return { member, dataplane: dataplaneKind, ...measured };
};

/** The other ends hear of a change within a second or two; then they take packets the new way. */
const RECEIVE_MS = 4000;
/** Ends that are late still send the old way. */
const SEND_MS = 20_000;

/** Leads from plan to plan by the steps between them. */
const createTransitions = (now: () => number) => {
  let before: NodePlan | undefined;
  let target: NodePlan | undefined;
  let sinceMs = 0;
  const elapsed = (): number => now() - sinceMs;
  const effective = (): NodePlan | undefined => {
    if (!before || !target || elapsed() >= RECEIVE_MS + SEND_MS) return target;
    return planTransition(before, target, elapsed() < RECEIVE_MS ? 'receive' : 'send');
  };
  return {
    effective,
    nextStepMs: (): number | undefined => {
      if (!before || elapsed() >= RECEIVE_MS + SEND_MS) return undefined;
      return (elapsed() < RECEIVE_MS ? RECEIVE_MS : RECEIVE_MS + SEND_MS) - elapsed();
    },
    to(next: NodePlan): void {
      const current = effective();
      // Plans that send the same way as the one we are on the way to change nothing about the steps there.
      const isElsewhere = target !== undefined && changedPrefixes(target, next).size > 0;
      if (current && isElsewhere) [before, sinceMs] = [current, now()];
      target = next;
    },
  };
};

export const createNodePlanner = (parts: PlannerParts): NodePlanner => {
  const { nodeName, source, planFile, logger, now = Date.now } = parts;
  const transitions = createTransitions(now);
  const kept = planFile.read();
  // A plan for the other data path is of no use here; what it brought about stays until there is one for this.
  let plan = kept?.dataplane === parts.dataplaneKind ? kept : undefined;
  if (plan) transitions.to(plan);
  let advertised: NodePlanner['advertised'];
  let plannedFrom = '';
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
    replan(underlay, pathMtuBytes) {
      const snapshot = source.snapshot();
      const paths = [...pathMtuBytes].sort(([a], [b]) => (a < b ? -1 : 1));
      const from = snapshot && `${snapshot.version} ${JSON.stringify([underlay, paths])}`;
      if (!snapshot || from === undefined || from === plannedFrom) return;
      const world = parseWorld(snapshot.objects);
      const local = localNode(snapshot, world, parts, { underlayMtuBytes: underlay.mtuBytes, pathMtuBytes });
      plannedFrom = from;
      if (!local) {
        if (!plan) logger.info('waiting for pod CIDRs and for a slice or pool to list this node');
        return;
      }
      const before = plan;
      plan = planNode(world, local);
      transitions.to(plan);
      advertised = plan.role === 'gateway' ? advertisedRoutes(world, nodeName) : undefined;
      planFile.write(plan);
      if (before?.role !== plan.role || before.site !== plan.site)
        logger.info({ site: plan.site, role: plan.role }, 'the node has a role');
    },
  };
};
