import type { Conntrack } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import type { SectionContext } from '../../section.port.ts';
import type { Fence } from '../fence.ts';
import type { EgressPlan } from '../plan/egress-plan.ts';
import { createHeldAddresses } from './held-addresses.ts';
import { createPortWatch, type PortWatchTimings } from './port-watch.ts';
import { createRuleTraffic, type RuleTraffic } from './rule-traffic.ts';

/** What operators see of egress at this node. */
export interface Observations {
  readonly traffic: RuleTraffic;
  /** Of each pass, behind what it did. */
  passed(plan: Pick<EgressPlan, 'addresses'>, held: ReadonlySet<string>): void;
  /** Of what works still. */
  problems(): readonly Problem[];
  stop(): void;
}

export interface ObservationsParts {
  readonly conntrack: Conntrack;
  readonly fence: Pick<Fence, 'lapsed'>;
  readonly timings: PortWatchTimings | undefined;
}

export const createObservations = (
  { metrics, logger, trigger }: Pick<SectionContext, 'metrics' | 'logger' | 'trigger'>,
  { conntrack, fence, timings }: ObservationsParts,
): Observations => {
  const showHeld = createHeldAddresses(metrics);
  const ports = createPortWatch({ conntrack, metrics, onChange: trigger, logger, ...(timings && { timings }) });
  return {
    traffic: createRuleTraffic(metrics),
    passed({ addresses }, held) {
      const usable = held.difference(fence.lapsed());
      showHeld(
        addresses.map(({ address }) => address),
        usable,
      );
      ports.look(held);
    },
    problems: () => ports.problems(),
    stop: () => ports.stop(),
  };
};
