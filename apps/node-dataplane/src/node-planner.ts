import type { AdvertisedRoute } from '@unbounded/crds';
import { tryParsePrefix } from '@unbounded/ip';
import type { Logger } from '@unbounded/telemetry';
import {
  advertisedRoutes,
  type DataplaneKind,
  findMember,
  type LocalNode,
  type NodePlan,
  parseWorld,
  planNode,
  type World,
} from '@unbounded/topology';
import type { StateFile } from './kernel/state-file.ts';
import type { Underlay } from './kernel/underlay.ts';
import type { Snapshot, WorldSource } from './world/source.port.ts';

/** Keeps the node's plan: made anew when anything changed that it is made from, and the last good one otherwise. */
export interface NodePlanner {
  readonly plan: NodePlan | undefined;
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

export const createNodePlanner = (parts: PlannerParts): NodePlanner => {
  const { nodeName, source, planFile, logger } = parts;
  let plan = planFile.read();
  let advertised: NodePlanner['advertised'];
  let plannedFrom = '';
  return {
    get plan() {
      return plan;
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
      advertised = plan.role === 'gateway' ? advertisedRoutes(world, nodeName) : undefined;
      planFile.write(plan);
      if (before?.role !== plan.role || before.site !== plan.site)
        logger.info({ site: plan.site, role: plan.role }, 'the node has a role');
    },
  };
};
