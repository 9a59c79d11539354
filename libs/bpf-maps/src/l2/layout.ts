import { encode } from '../codec.ts';
import { fingerprintOf } from '../layout.ts';
import { L2_NEIGHBOR_FLAGS, l2FdbEntry, l2FdbKey, l2Neighbor, l2NeighborKey } from './bindings.ts';
import { L2_NETWORK_FLAGS, l2Config, l2Flood, l2Network, l2SegmentKey } from './networks.ts';
import { l2AddressKey, l2Port } from './ports.ts';
import { L2_REASONS, l2CounterKey } from './reasons.ts';
import { L2_PORT_FLAGS } from './rights.ts';
import { L2_LAYOUT_VERSION } from './shape.ts';

/** The maps of stretched L2 by name, with the sizes that their layouts have. */
export const L2_MAPS = {
  unbounded_l2_ports: { keyBytes: 4, valueBytes: 40, maxEntries: 1024 },
  unbounded_l2_addresses: { keyBytes: 20, valueBytes: 4, maxEntries: 16_384 },
  unbounded_l2_networks: { keyBytes: 4, valueBytes: 16, maxEntries: 256 },
  unbounded_l2_fdb: { keyBytes: 12, valueBytes: 32, maxEntries: 65_536 },
  unbounded_l2_neighbors: { keyBytes: 20, valueBytes: 12, maxEntries: 65_536 },
  unbounded_l2_segments: { keyBytes: 12, valueBytes: 4, maxEntries: 4096 },
  unbounded_l2_flood: { keyBytes: 4, valueBytes: 656, maxEntries: 256 },
  unbounded_l2_buckets: { keyBytes: 4, valueBytes: 32, maxEntries: 1024 },
  unbounded_l2_config: { keyBytes: 4, valueBytes: 32, maxEntries: 1 },
  unbounded_l2_counters: { keyBytes: 8, valueBytes: 8, maxEntries: 65_536 },
  unbounded_l2_totals: { keyBytes: 4, valueBytes: 8, maxEntries: L2_REASONS.length },
} as const;

const MAC = '02:0a:01:02:03:04';
const [NETWORK, SEGMENT, IFINDEX] = [0x0102_0304, 0x0506_0708, 0x090a_0b0c];

/** Everything that tells one layout from another: sizes, names and codes, and records as they are written. */
const identity = (): unknown => [
  L2_LAYOUT_VERSION,
  L2_MAPS,
  L2_REASONS,
  [L2_PORT_FLAGS, L2_NETWORK_FLAGS, L2_NEIGHBOR_FLAGS],
  ...[
    encode(l2Port, { network: NETWORK, segment: SEGMENT, trusted: true, rate: 100, burst: 200, mac: MAC }),
    encode(l2AddressKey, { ifindex: IFINDEX, address: '192.0.2.7' }),
    encode(l2AddressKey, { ifindex: IFINDEX, address: '2001:db8::7' }),
    encode(l2Network, { broadcast: true, mtu: 1366 }),
    encode(l2SegmentKey, { network: NETWORK, from: 1, to: 2 }),
    encode(l2FdbKey, { network: NETWORK, mac: MAC }),
    encode(l2FdbEntry, { ifindex: IFINDEX, segment: SEGMENT, sequence: 7n }),
    encode(l2FdbEntry, { locator: '2001:db8:0:7::', segment: SEGMENT, sequence: 7n, trusted: true }),
    encode(l2NeighborKey, { network: NETWORK, address: '192.0.2.7' }),
    encode(l2Neighbor, { mac: MAC, router: true }),
    encode(l2Flood, { ports: [IFINDEX], locators: ['2001:db8:0:7::'] }),
    encode(l2Config, { locator: '2001:db8:0:7::', ifindex: IFINDEX, mac: MAC }),
    encode(l2CounterKey, { ifindex: IFINDEX, reason: 'forwarded' }),
  ].map((bytes) => [...bytes]),
];

/** 8 hex digits by which the layout of these maps is recognized. */
export const l2LayoutFingerprint = (): string => fingerprintOf(identity());
