import type { EgressPlan, EgressSnapshot } from '@unbounded/egress';
import type { Metrics } from '@unbounded/telemetry';

export interface EgressMetrics {
  planned(plan: EgressPlan, nodes: EgressSnapshot['nodes'], seconds: number): void;
  sliceWritten(): void;
  /** Slices that are not as planned, because the API server refuses them. */
  slicesRefused(count: number): void;
}

const PREFIX = 'unbounded_net_controller_egress';
/** Seconds. */
const PLAN_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

type Ownership = EgressPlan['ownerships'] extends ReadonlyMap<string, infer O> ? O : never;

const STATES = ['owned', 'taking', 'silent', 'releasing', 'unowned'] as const;

const stateOf = ({ owner, trouble }: Ownership): (typeof STATES)[number] => {
  if (trouble === 'OwnerSilent') return 'silent';
  if (trouble === 'AwaitingRelease') return 'releasing';
  if (trouble === 'AddressNotHeld') return 'taking';
  return owner === undefined ? 'unowned' : 'owned';
};

export const egressMetrics = (metrics: Metrics): EgressMetrics => {
  const rules = metrics.gauge({
    name: `${PREFIX}_rules`,
    help: 'StaticEgressIPs and ClusterStaticEgressIPs, by their condition Ready.',
    labels: ['ready'],
  });
  const addresses = metrics.gauge({
    name: `${PREFIX}_addresses`,
    help: 'Egress addresses of rules: owned, taking (its owner does not hold it yet), silent (the owner does not answer), releasing (a former owner has to confirm), unowned.',
    labels: ['state'],
  });
  const problems = metrics.gauge({
    name: `${PREFIX}_problems`,
    help: 'Conditions of rules and pools that are False, by reason.',
    labels: ['reason'],
  });
  const pods = metrics.gauge({ name: `${PREFIX}_pods`, help: 'Pods that leave by a rule.' });
  const agents = metrics.gauge({
    name: `${PREFIX}_live_agents`,
    help: 'Ready nodes whose agents send heartbeats: they can own addresses.',
  });
  const slices = metrics.gauge({ name: `${PREFIX}_slices`, help: 'EgressNodeSlices of the last plan.' });
  const sliceWrites = metrics.counter({
    name: `${PREFIX}_slice_writes_total`,
    help: 'EgressNodeSlices that were created, changed or deleted.',
  });
  const refused = metrics.gauge({
    name: `${PREFIX}_refused_slices`,
    help: 'EgressNodeSlices that are not as planned, because the API server refuses them: Events WriteRefused say why.',
  });
  const duration = metrics.histogram({
    name: `${PREFIX}_plan_duration_seconds`,
    help: 'Time that a plan takes.',
    buckets: PLAN_BUCKETS,
  });
  return {
    sliceWritten: () => sliceWrites.inc(),
    slicesRefused: (count) => refused.set(count),
    planned: (plan, nodes, seconds) => {
      agents.set(nodes.filter(({ isAlive }) => isAlive).length);
      duration.observe(seconds);
      slices.set(plan.slices.size);
      pods.set(plan.routedPods.size);
      for (const gauge of [rules, addresses, problems]) gauge.reset();
      for (const state of STATES) addresses.set({ state }, 0);
      for (const ownership of plan.ownerships.values()) addresses.inc({ state: stateOf(ownership) });
      for (const { conditions } of plan.ruleStatuses.values()) {
        const isReady = conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
        rules.inc({ ready: String(isReady) });
      }
      for (const { conditions } of [...plan.ruleStatuses.values(), ...plan.poolStatuses.values()]) {
        for (const { type, status, reason } of conditions) {
          if (type !== 'Ready' && status === 'False') problems.inc({ reason });
        }
      }
    },
  };
};
