import type { DeviceState } from '@unbounded/keeper-protocol';
import type { Metrics } from '@unbounded/telemetry';
import { createRestartCount } from './restart-count.ts';

/** What the agent counts for operators. No series is of one pod: there would be one for each pod that ever was. */

/** As a TailnetDevice has it; and of pods that have no container, or no record yet. */
const DEVICE_STATES = [
  ...(['NoContainer', 'NoRecord', 'Starting', 'NeedsLogin', 'NeedsApproval', 'Running', 'Stopped'] as const),
];
export type DeviceMetricState = (typeof DEVICE_STATES)[number];

/** A pod of this node, at one moment. */
export interface ObservedDevice {
  readonly podUID: string;
  readonly state: DeviceMetricState;
  /** Undefined: the keeper has not said anything. */
  readonly keeper: DeviceState | undefined;
}

export interface Observation {
  readonly devices: readonly ObservedDevice[];
  /** Pods whose device is still to be removed. */
  readonly pendingRemovals: number;
}

/** Whether the device had been in the tailnet before: else it logged in by a key. */
export type Identity = 'new' | 'kept';

export type CniMethod = 'Add' | 'Del' | 'Check';

export interface AgentMetrics {
  /** A device is up. @param seconds since its container was added */
  readonly up: (seconds: number, identity: Identity) => void;
  readonly answered: (method: CniMethod, result: string, seconds: number) => void;
  /** Is asked before each rendering. */
  observe(look: () => Observation): void;
}

const PREFIX = 'unbounded_tailnet_agent';
/** Seconds. Most are up within one; a pod may wait for a key for minutes. */
const UP_BUCKETS = [0.1, 0.25, 0.5, 0.8, 1, 1.5, 2.5, 5, 10, 30, 60, 120, 600];

const requestMetrics = (metrics: Metrics): AgentMetrics['answered'] => {
  const requests = metrics.counter({
    name: `${PREFIX}_cni_requests_total`,
    help: 'Requests of the agent of the node for containers, by method and result.',
    labels: ['method', 'result'],
  });
  const seconds = metrics.histogram({
    name: `${PREFIX}_cni_request_seconds`,
    help: 'Duration of requests for containers. An Add of a pod that waits for its device waits as long.',
    labels: ['method'],
  });
  return (method, result, took) => {
    requests.inc({ method, result });
    seconds.observe({ method }, took);
  };
};

export const agentMetrics = (metrics: Metrics): AgentMetrics => {
  const devices = metrics.gauge({
    name: `${PREFIX}_devices`,
    help: 'Pods of this node that are devices, by the state of the device.',
    labels: ['state'],
  });
  const pending = metrics.gauge({
    name: `${PREFIX}_pending_removals`,
    help: 'Pods of this node that are devices no more, and whose process or identity is still there.',
  });
  const restarts = metrics.counter({
    name: `${PREFIX}_process_restarts_total`,
    help: 'Processes of devices that the keeper has started again in a container that had one.',
  });
  const up = metrics.histogram({
    name: `${PREFIX}_device_up_seconds`,
    help: 'Time from the ADD of a container until the device is Running and its addresses stand, by identity: new (it logs in) or kept.',
    labels: ['identity'],
    buckets: UP_BUCKETS,
  });
  const restartsIn = createRestartCount();
  return {
    up: (seconds, identity) => up.observe({ identity }, seconds),
    answered: requestMetrics(metrics),
    observe: (look) =>
      metrics.onRender(() => {
        const { devices: seen, pendingRemovals } = look();
        for (const state of DEVICE_STATES)
          devices.set({ state }, seen.filter((device) => device.state === state).length);
        pending.set(pendingRemovals);
        restarts.inc(restartsIn(seen));
      }),
  };
};
