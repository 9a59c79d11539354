import { DEVICES, findMember, type LocalNode, type NodePlan, parseWorld, planNode } from '@unbounded/topology';
import type { Logger } from '@unbounded/telemetry';
import { tryParsePrefix } from '@unbounded/ip';
import { ensureCniConfig } from './cni/config.ts';
import { applyPlan, type Dataplane } from './dataplane.ts';
import type { StateFile } from './kernel/state-file.ts';
import type { Underlay } from './kernel/underlay.ts';
import type { Reporter, Snapshot, WorldSource } from './world/source.port.ts';

/** Observe, plan, diff, apply, report: the agent's one job, a pass at a time. */

export interface AgentParts {
  readonly nodeName: string;
  readonly dataplane: Dataplane;
  readonly source: WorldSource;
  readonly reporter: Reporter;
  readonly planFile: StateFile<NodePlan>;
  readonly cniFolder: string;
  readonly publicKey: string;
  readonly protocols: readonly string[];
  readonly underlay: () => Promise<Underlay>;
  readonly logger: Logger;
}

/** Milliseconds: drift is found and repaired within this; something that will be ready soon is looked at again sooner. */
const REPAIR_EVERY_MS = 5000;
const SOON_MS = 200;
const WIREGUARD_OVERHEAD_BYTES = 80;

/** What the plan is made for: the member that the objects list, with what the Node itself says. */
const localNode = (
  snapshot: Snapshot,
  world: ReturnType<typeof parseWorld>,
  parts: AgentParts,
  underlay: Underlay,
): LocalNode | undefined => {
  const listed = findMember(world, parts.nodeName);
  if (!listed || !snapshot.node) return undefined;
  const podCidrs = snapshot.node.podCidrs.flatMap((text) => tryParsePrefix(text) ?? []);
  if (podCidrs.length === 0) return undefined;
  const member = {
    ...listed,
    podCidrs,
    internalIps: snapshot.node.internalIps,
    protocols: parts.protocols,
    publicKey: parts.publicKey,
  };
  return { member, underlayMtuBytes: underlay.mtuBytes, pathMtuBytes: parts.dataplane.health.pathMtuBytes() };
};

export interface Agent {
  /** One pass; returns when the next is due, in milliseconds. */
  pass(): Promise<number>;
  /** A plan has been applied since the process started. */
  readonly isReady: boolean;
  readonly plan: NodePlan | undefined;
}

type Problems = readonly { readonly reason: string; readonly message: string }[];

/** Logs problems when they change, not at every pass. */
const createProblemLog = (logger: Logger): ((problems: Problems) => void) => {
  let told = '';
  return (problems) => {
    const text = problems.map(({ message }) => message).join('\n');
    if (text !== told) for (const { reason, message } of problems) logger.warn({ reason }, message);
    told = text;
  };
};

export const createAgent = (parts: AgentParts): Agent => {
  const { dataplane, source, reporter, planFile, logger } = parts;
  let plan = planFile.read();
  let plannedFrom = '';
  let isReady = false;

  /** Plans anew when the objects, the underlay or what paths carry changed; otherwise, and while the objects are away, the last plan stands. */
  const replan = async (underlay: Underlay): Promise<void> => {
    const snapshot = source.snapshot();
    const paths = [...dataplane.health.pathMtuBytes()].sort(([a], [b]) => (a < b ? -1 : 1));
    const from = snapshot && `${snapshot.version} ${JSON.stringify([underlay, paths])}`;
    if (!snapshot || from === undefined || from === plannedFrom) return;
    const world = parseWorld(snapshot.objects);
    const local = localNode(snapshot, world, parts, underlay);
    plannedFrom = from;
    if (!local) {
      if (!plan) logger.info('waiting for pod CIDRs and for a slice or pool to list this node');
      return;
    }
    plan = planNode(world, local);
    planFile.write(plan);
  };

  const tellProblems = createProblemLog(logger);

  const report = async (
    underlay: Underlay,
    problems: readonly { reason: string; message: string }[],
  ): Promise<void> => {
    try {
      await reporter.report({
        publicKey: parts.publicKey,
        tunnelMtuBytes: underlay.mtuBytes - WIREGUARD_OVERHEAD_BYTES,
        protocols: parts.protocols,
        networkReady: isReady,
        problems,
      });
    } catch (error) {
      logger.warn({ error: (error as Error).message }, 'cannot report; the network goes on');
    }
  };

  return {
    get isReady() {
      return isReady;
    },
    get plan() {
      return plan;
    },
    async pass() {
      const underlay = await parts.underlay();
      await replan(underlay);
      if (!plan) {
        await report(underlay, []);
        return REPAIR_EVERY_MS;
      }
      const outcome = await applyPlan(dataplane, plan);
      // Without a bridge of ours no pod may be plugged in: a foreign one of that name would get our addresses.
      const cni = outcome.devices.has(DEVICES.bridge) ? ensureCniConfig(parts.cniFolder, plan) : [];
      const problems = [...outcome.problems, ...cni];
      tellProblems(problems);
      if (!outcome.again && !isReady) {
        isReady = true;
        const { site, role, endpoints, wireGuard } = plan;
        logger.info({ site, role, endpoints: endpoints.length, wireGuard: wireGuard.length }, 'the plan is applied');
      }
      await report(underlay, problems);
      return outcome.again ? SOON_MS : REPAIR_EVERY_MS;
    },
  };
};
