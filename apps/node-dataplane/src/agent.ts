import type { Logger } from '@unbounded/telemetry';
import { DEVICES, type NodePlan } from '@unbounded/topology';
import { ensureCniConfig } from './cni/config.ts';
import { applyPlan, type Dataplane } from './dataplane.ts';
import type { Underlay } from './kernel/underlay.ts';
import type { NodePlanner } from './node-planner.ts';
import type { Reporter } from './world/source.port.ts';

/** Observe, plan, diff, apply, report: the agent's one job, a pass at a time. */

export interface AgentParts {
  readonly planner: NodePlanner;
  readonly dataplane: Dataplane;
  readonly reporter: Reporter;
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
  const { planner, dataplane, reporter, logger } = parts;
  let isReady = false;

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
        routes: planner.advertised,
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
      return planner.plan;
    },
    async pass() {
      const underlay = await parts.underlay();
      planner.replan(underlay, dataplane.health.pathMtuBytes());
      const { plan } = planner;
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
      return outcome.again ? SOON_MS : Math.min(REPAIR_EVERY_MS, planner.nextStepMs ?? REPAIR_EVERY_MS);
    },
  };
};
