import { type Cluster, coreClients, createEventRecorder, type EventRecorder } from '@unbounded/kube';
import type { Logger, Metrics } from '@unbounded/telemetry';

/** An hour, which Events live by default, has at most 25 + 60 of an agent. The chart's policy holds its token to their names. */
const ALLOWANCE = { most: 25, everyMs: 60_000 } as const;

export const createAgentEvents = (
  cluster: Cluster,
  services: { readonly logger: Logger; readonly metrics: Metrics },
): EventRecorder =>
  createEventRecorder({
    events: coreClients(cluster).events,
    controller: 'unbounded/node-dataplane',
    allowance: ALLOWANCE,
    ...services,
  });
