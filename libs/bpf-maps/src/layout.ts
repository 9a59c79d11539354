import { LAYOUT_VERSION, LEADING_BYTES } from '#shape';
import { type Codec, encode } from './codec.ts';
import { echoAddresses } from './echo.ts';
import { type Endpoint, endpointV4, endpointV6, FLAGS, lpmKeyV4, lpmKeyV6, PROTOCOLS } from './endpoints.ts';
import { brought, forwarderKey } from './forwarders.ts';
import { nexthopGroup } from './groups.ts';
import { localAddresses } from './locals.ts';
import { encapConfig, STATS } from './stats.ts';

/** The maps by name, with the sizes that their layouts have. */
export const MAPS = {
  unbounded_endpoints_v4: { keyBytes: 8, valueBytes: LEADING_BYTES.endpointV4 + 20, maxEntries: 16_384 },
  unbounded_endpoints_v6: { keyBytes: 20, valueBytes: 32, maxEntries: 16_384 },
  unbounded_nexthop_groups: { keyBytes: 4, valueBytes: LEADING_BYTES.nexthopGroup + 584, maxEntries: 4096 },
  unbounded_forwarders: { keyBytes: 20, valueBytes: 4, maxEntries: 1024 },
  unbounded_config: { keyBytes: 4, valueBytes: 12, maxEntries: 1 },
  unbounded_locals: { keyBytes: 4, valueBytes: 20, maxEntries: 1 },
  unbounded_echo: { keyBytes: 4, valueBytes: 20, maxEntries: 1 },
  unbounded_stats: { keyBytes: 4, valueBytes: 8, maxEntries: STATS.length },
} as const;

const V4: Endpoint = {
  remote: '192.0.2.7',
  vni: 0x0102_0304,
  ifindex: 0x0506_0708,
  protocol: 'vxlan',
  setKey: true,
  healthy: true,
};
const V6: Endpoint = { ...V4, remote: '2001:db8::7', protocol: 'geneve', mac: '02:0a:01:02:03:ff', ownSource: true };
const GROUPED: Endpoint = { vni: 0, ifindex: 0, protocol: 'none', setKey: false, healthy: false, group: 0x1234 };

const bytesOf = <T>(codec: Codec<T>, ...values: readonly T[]): number[][] =>
  values.map((value) => [...encode(codec, value)]);

/** Everything that tells one layout from another, as values: sizes, names and codes, and records as they are written. */
const identity = (): unknown => [
  LAYOUT_VERSION,
  MAPS,
  STATS,
  FLAGS,
  PROTOCOLS,
  bytesOf(lpmKeyV4, '100.64.2.0/24'),
  bytesOf(lpmKeyV6, '2001:db8:7::/48'),
  bytesOf(endpointV4, V4, GROUPED),
  bytesOf(endpointV6, V4, V6, GROUPED),
  bytesOf(nexthopGroup, [
    { ...V4, weight: 1 },
    { ...V6, weight: 2 },
  ]),
  bytesOf(forwarderKey, '192.0.2.7', '2001:db8::7'),
  bytesOf(brought, { others: true }, { echoes: true }),
  bytesOf(encapConfig, { anySource: true, ownMac: '02:0a:01:00:15:ff' }),
  bytesOf(localAddresses, { ipv4: '192.0.2.7', ipv6: '2001:db8::7' }),
  bytesOf(echoAddresses, { ipv4: '100.64.1.0', ipv6: 'fd00:1::ff' }),
];

const [FNV_OFFSET, FNV_PRIME] = [0x811c_9dc5, 0x0100_0193];

/** 8 hex digits of a value: FNV-1a of its JSON. */
export const fingerprintOf = (value: unknown): string => {
  let hash = FNV_OFFSET;
  for (const byte of new TextEncoder().encode(JSON.stringify(value))) hash = Math.imul(hash ^ byte, FNV_PRIME);
  return (hash >>> 0).toString(16).padStart(8, '0');
};

/**
 * 8 hex digits by which a layout is recognized: another one has others, also when its number and its sizes are the same (two
 * branches that each made a next one).
 */
export const layoutFingerprint = (): string => fingerprintOf(identity());
