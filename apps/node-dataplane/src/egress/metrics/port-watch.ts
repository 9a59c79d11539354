import type { Answers, Conntrack } from '@unbounded/netlink';
import type { Logger, Metrics } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';
import { exhausting, highestUsages, portsExhausting, type PortUsage, shareOf } from './port-usage.plan.ts';

/** Looks at times how many ports of the node's egress addresses are in use, beside the passes: none waits for it. */
export interface PortWatch {
  /** Begins to look when that is due. */
  look(addresses: ReadonlySet<string>): void;
  /** As it was last seen. */
  problems(): readonly Problem[];
  stop(): void;
}

export interface PortWatchTimings {
  readonly everyMs: number;
  /** Share of an address's ports to one destination from which on there is a problem, up to 1. */
  readonly threshold: number;
}

/**
 * The kernel can only list connections: 50,000 took 0.2 s of a processor, in pieces that hold up the agent for 15 to 35 ms. So often this is
 * less than 1 % of a processor. In that time a pod that opens 400 connections in a second uses up what the threshold leaves.
 */
const TIMINGS: PortWatchTimings = { everyMs: 30_000, threshold: 0.8 };

export interface PortWatchParts {
  readonly conntrack: Pick<Conntrack, 'countAnsweredAt'>;
  readonly metrics: Metrics;
  /** Other addresses have a problem than before. */
  readonly onChange: () => void;
  readonly logger: Logger;
  readonly timings?: PortWatchTimings;
}

export const createPortWatch = ({
  conntrack,
  metrics,
  onChange,
  logger,
  timings: { everyMs, threshold } = TIMINGS,
}: PortWatchParts): PortWatch => {
  const share = metrics.gauge({
    name: 'unbounded_egress_ports_used_ratio',
    help: 'Share of the ports of an egress address of this node that are in use to one destination, of that with most.',
    labels: ['address'],
  });
  let usages: ReadonlyMap<string, PortUsage> = new Map();
  let warned: ReadonlySet<string> = new Set();
  let lookedMs = Number.NEGATIVE_INFINITY;
  let isLooking = false;
  let isStopped = false;

  const take = (addresses: ReadonlySet<string>, counts: ReadonlyMap<Answers, number>): void => {
    usages = highestUsages(counts);
    share.reset();
    for (const address of addresses) share.set({ address }, shareOf(usages.get(address) ?? { ports: 0 }));
    const before = warned;
    warned = exhausting(usages, before, threshold);
    if (warned.size !== before.size || [...warned].some((address) => !before.has(address))) onChange();
  };
  const lookNow = async (addresses: ReadonlySet<string>): Promise<void> => {
    try {
      const counts =
        addresses.size === 0 ? new Map<Answers, number>() : await conntrack.countAnsweredAt([...addresses]);
      if (!isStopped) take(addresses, counts);
    } catch (error) {
      if (!isStopped)
        logger.warn({ error: (error as Error).message }, 'cannot count the ports of egress addresses that are in use');
    }
  };
  return {
    look(addresses) {
      if (isLooking || performance.now() - lookedMs < everyMs) return;
      lookedMs = performance.now();
      isLooking = true;
      void lookNow(new Set(addresses)).finally(() => (isLooking = false));
    },
    problems: () => [...warned].sort().map((address) => portsExhausting(usages.get(address)!)),
    stop() {
      isStopped = true;
    },
  };
};
