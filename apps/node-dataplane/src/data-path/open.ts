import { join } from 'node:path';
import type { RouteSocket } from '@unbounded/netlink';
import type { Metrics } from '@unbounded/telemetry';
import type { AgentConfig } from '../agent.config.ts';
import type { StateFaults } from '../state/state-faults.ts';
import { openEbpfPath } from './ebpf/ebpf-path.ts';
import { createOverlayMetrics } from './ebpf/overlay-metrics.ts';
import { openNetlinkPath } from './netlink/netlink-path.ts';
import type { DataPath } from './port.ts';

/** The data path that the node is configured to have. */
export const openDataPath = (
  { dataplane, bpfObject, bpffsDir, stateDir }: Pick<AgentConfig, 'dataplane' | 'bpfObject' | 'bpffsDir' | 'stateDir'>,
  { net, faults, metrics }: { readonly net: RouteSocket; readonly faults: StateFaults; readonly metrics: Metrics },
): DataPath => {
  const files = { indexFile: join(stateDir, 'groups.json'), pinFolder: bpffsDir, faults };
  return dataplane === 'ebpf'
    ? openEbpfPath(net, { ...files, objectPath: bpfObject, overlayMetrics: createOverlayMetrics(metrics) })
    : openNetlinkPath(net, files);
};
