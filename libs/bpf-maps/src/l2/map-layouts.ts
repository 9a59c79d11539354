import { configKey } from '../stats.ts';
import { l2FdbEntry, l2FdbKey, l2Neighbor, l2NeighborKey } from './bindings.ts';
import { l2Config, l2Flood, l2Network, l2NetworkKey, l2SegmentKey } from './networks.ts';
import { l2AddressKey, l2Buckets, l2Port, l2PortKey, l2Present } from './ports.ts';

/** Names, keys and values of the maps of stretched L2 that have one value for all CPUs. */
export const L2_MAP_LAYOUTS = {
  config: { name: 'unbounded_l2_config', key: configKey, value: l2Config },
  networks: { name: 'unbounded_l2_networks', key: l2NetworkKey, value: l2Network },
  segments: { name: 'unbounded_l2_segments', key: l2SegmentKey, value: l2Present },
  addresses: { name: 'unbounded_l2_addresses', key: l2AddressKey, value: l2Present },
  ports: { name: 'unbounded_l2_ports', key: l2PortKey, value: l2Port },
  fdb: { name: 'unbounded_l2_fdb', key: l2FdbKey, value: l2FdbEntry },
  neighbors: { name: 'unbounded_l2_neighbors', key: l2NeighborKey, value: l2Neighbor },
  flood: { name: 'unbounded_l2_flood', key: l2NetworkKey, value: l2Flood },
  buckets: { name: 'unbounded_l2_buckets', key: l2PortKey, value: l2Buckets },
} as const;
