import { configKey, counter, MAPS } from '@unbounded/bpf-maps';
import {
  l2AddressKey,
  l2Buckets,
  l2Config,
  l2CounterKey,
  l2FdbEntry,
  l2FdbKey,
  l2Flood,
  l2LayoutFingerprint,
  L2_MAPS,
  l2Neighbor,
  l2NeighborKey,
  l2Network,
  l2NetworkKey,
  l2Port,
  l2PortKey,
  l2Present,
  l2SegmentKey,
  l2TotalKey,
} from '@unbounded/bpf-maps/l2';
import type { BpfObject } from '@unbounded/libbpf-ts';
import type { Loaded } from '../bpf/attachments.ts';
import { loadPinned } from '../bpf/load-pinned.ts';

/** The maps of stretched L2: pinned, so that they outlive this process. */

const openMaps = (object: BpfObject) => ({
  config: object.map('unbounded_l2_config', configKey, l2Config),
  networks: object.map('unbounded_l2_networks', l2NetworkKey, l2Network),
  segments: object.map('unbounded_l2_segments', l2SegmentKey, l2Present),
  addresses: object.map('unbounded_l2_addresses', l2AddressKey, l2Present),
  ports: object.map('unbounded_l2_ports', l2PortKey, l2Port),
  fdb: object.map('unbounded_l2_fdb', l2FdbKey, l2FdbEntry),
  neighbors: object.map('unbounded_l2_neighbors', l2NeighborKey, l2Neighbor),
  flood: object.map('unbounded_l2_flood', l2NetworkKey, l2Flood),
  buckets: object.map('unbounded_l2_buckets', l2PortKey, l2Buckets),
  counters: object.perCpuMap('unbounded_l2_counters', l2CounterKey, counter),
  totals: object.perCpuMap('unbounded_l2_totals', l2TotalKey, counter),
});
export type L2Maps = ReturnType<typeof openMaps>;

export interface LoadedL2 extends Loaded {
  readonly maps: L2Maps;
}

export interface L2Files {
  /** The compiled programs. */
  readonly objectPath: string;
  /** Of this layout, in a folder of the section's own. */
  readonly pinFolder: string;
  /** Of the data path's eBPF maps, by which frames go straight into tunnels; undefined: the data path is another. */
  readonly dataPathPins: string | undefined;
}

/** @throws TypeError when the programs and this agent were not built together; BpfError */
export const loadL2 = ({ objectPath, pinFolder, dataPathPins }: L2Files): LoadedL2 => {
  const fingerprint = l2LayoutFingerprint();
  const shared = { pinFolder: dataPathPins, names: Object.keys(MAPS) };
  const loaded = loadPinned({ name: 'unbounded_l2', objectPath, pinFolder, maps: L2_MAPS, fingerprint, shared });
  return { ...loaded, maps: openMaps(loaded.object) };
};
