export { type Codec, decode, encode } from './codec.ts';
export {
  type Endpoint,
  endpointV4,
  endpointV6,
  FLAGS,
  innerMac,
  LARGEST_GROUP_INDEX,
  lpmKeyV4,
  lpmKeyV6,
  type NextHop,
  type Protocol,
  PROTOCOLS,
} from './endpoints.ts';
export { forwarderKey, present } from './forwarders.ts';
export { GROUP_MEMBERS, type GroupMember, groupKey, nexthopGroup } from './groups.ts';
export { type LocalAddresses, localAddresses } from './locals.ts';
export { configKey, counter, type EncapConfig, encapConfig, type Stat, STATS, statsKey } from './stats.ts';

/** The maps by name, with the sizes that their layouts have. */
export const MAPS = {
  unbounded_endpoints_v4: { keyBytes: 8, valueBytes: 20, maxEntries: 16_384 },
  unbounded_endpoints_v6: { keyBytes: 20, valueBytes: 32, maxEntries: 16_384 },
  unbounded_nexthop_groups: { keyBytes: 4, valueBytes: 584, maxEntries: 4096 },
  unbounded_forwarders: { keyBytes: 20, valueBytes: 4, maxEntries: 1024 },
  unbounded_config: { keyBytes: 4, valueBytes: 12, maxEntries: 1 },
  unbounded_locals: { keyBytes: 4, valueBytes: 20, maxEntries: 1 },
  unbounded_stats: { keyBytes: 4, valueBytes: 8, maxEntries: 12 },
} as const;
