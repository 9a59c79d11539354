import { join } from 'node:path';
import type { AgentConfig } from '../agent.config.ts';
import type { SectionContext } from '../section.port.ts';
import { openEbpfPath } from './ebpf/ebpf-path.ts';
import { openNetlinkPath } from './netlink/netlink-path.ts';
import type { DataPath } from './port.ts';

/** The data path that the node is configured to have. */
export const openDataPath = (
  { dataplane, bpfObject, bpffsDir, stateDir }: Pick<AgentConfig, 'dataplane' | 'bpfObject' | 'bpffsDir' | 'stateDir'>,
  { net, faults, metrics, kernelWrites }: Pick<SectionContext, 'net' | 'faults' | 'metrics' | 'kernelWrites'>,
): DataPath => {
  const files = { indexFile: join(stateDir, 'groups.json'), pinFolder: bpffsDir, faults };
  return dataplane === 'ebpf'
    ? openEbpfPath(net, { ...files, objectPath: bpfObject, metrics, countWrites: kernelWrites.map })
    : openNetlinkPath(net, files);
};
