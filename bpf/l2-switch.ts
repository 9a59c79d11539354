import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import {
  configKey,
  counter,
  encapConfig,
  endpointV6,
  groupKey,
  lpmKeyV6,
  nexthopGroup,
  statsKey,
} from '@unbounded/bpf-maps';
import { L2_MAP_LAYOUTS, l2CounterKey, type L2Reason, L2_REASONS, l2TotalKey } from '@unbounded/bpf-maps/l2';
import { type BpfObject, loadObject, openMaps, type TestRunResult } from '@unbounded/libbpf-ts';
import { type Outer, outer, sid } from './l2-frames.ts';

/** The programs of stretched L2 with their maps, for tests. */

export const L2_OBJECT = new URL('build/unbounded_l2.bpf.o', import.meta.url).pathname;

/** An entry of an array cannot be removed: this one is all zero. */
const NOTHING = { size: 32, write: () => undefined, read: () => undefined };

const mapsOf = (object: BpfObject) => ({
  ...openMaps(object, L2_MAP_LAYOUTS),
  counters: object.perCpuMap('unbounded_l2_counters', l2CounterKey, counter),
  totals: object.perCpuMap('unbounded_l2_totals', l2TotalKey, counter),
  /** Of the data path. */
  endpoints: object.map('unbounded_endpoints_v6', lpmKeyV6, endpointV6),
  groups: object.map('unbounded_nexthop_groups', groupKey, nexthopGroup),
  tunnelConfig: object.map('unbounded_config', configKey, encapConfig),
  redirected: object.perCpuMap('unbounded_stats', statsKey, counter),
});

export interface L2Switch extends ReturnType<typeof mapsOf>, Disposable {
  readonly object: BpfObject;
  /** Takes the node's own record away. */
  unconfigure(): void;
  /** What the programs counted without an entry for the device, by reason; only what is not zero. */
  counts(): Partial<Record<L2Reason, number>>;
}

/** Sums over all CPUs, only what is not zero. */
export const countsOf = <K extends string>(map: { entries(): Iterable<[K, bigint[]]> }): Partial<Record<K, number>> =>
  Object.fromEntries(
    [...map.entries()]
      .map(([reason, values]) => [reason, Number(values.reduce((sum, value) => sum + value, 0n))] as const)
      .filter(([, count]) => count !== 0),
  ) as Partial<Record<K, number>>;

export const loadSwitch = (): L2Switch => {
  const object = loadObject(readFileSync(L2_OBJECT), { name: 'l2' });
  const maps = mapsOf(object);
  const counts = (): Partial<Record<L2Reason, number>> => countsOf(maps.totals);
  const unconfigure = (): void => object.map('unbounded_l2_config', configKey, NOTHING).set(0, undefined);
  return { ...maps, object, counts, unconfigure, [Symbol.dispose]: () => object.close() };
};

/** Of the programs as their sources are now. */
export const buildSwitch = (): L2Switch => {
  execFileSync(new URL('build.sh', import.meta.url).pathname, { stdio: 'inherit' });
  return loadSwitch();
};

/** What a test run returns. */
export const [SHOT, REDIRECT] = [2, 7];

/** The loopback device: a test run without a context comes from there. */
export const PORT = 1;
export const NETWORK = 0x0102_0304;
export const MTU = 1366;
export const LOCATOR = 'fd00:cafe:0:1::';
export const FAR_LOCATOR = 'fd00:cafe:0:2::';
export const OWN = { mac: '02:00:00:00:00:01', ipv4: '10.9.0.1', ipv6: 'fd99::1' } as const;
/** At another port of the node. */
export const NEAR = { ifindex: 4242, mac: '02:00:00:00:00:02', ipv4: '10.9.0.2', ipv6: 'fd99::2' } as const;
/** At another node. */
export const FAR = { mac: '02:00:00:00:00:03', ipv4: '10.9.0.3', ipv6: 'fd99::3' } as const;
export const DEVICE = { ifindex: 4343, mac: '02:00:00:00:00:aa' } as const;
export const SEGMENT = 7;

/** Removes what is in the maps and counted: loading the programs for each test would take a quarter of a second. */
const clear = (l2: L2Switch): void => {
  for (const map of [
    l2.ports,
    l2.addresses,
    l2.networks,
    l2.fdb,
    l2.neighbors,
    l2.segments,
    l2.flood,
    l2.buckets,
    l2.counters,
    l2.endpoints,
    l2.groups,
  ])
    for (const [key] of [...(map as { entries(): Iterable<[unknown, unknown]> }).entries()])
      (map as { delete(key: unknown): boolean }).delete(key);
  for (const reason of L2_REASONS) l2.totals.setAll(reason, 0n);
};

/** A network with our port, another one here, and an endpoint at another node; it replicates nothing but what every network does. */
export const populate = (l2: L2Switch): void => {
  clear(l2);
  const port = { network: NETWORK, segment: SEGMENT, rate: 1000, burst: 100 };
  l2.networks.set(NETWORK, { mtu: MTU });
  l2.config.set(0, { locator: LOCATOR, ...DEVICE });
  l2.ports.set(PORT, { ...port, mac: OWN.mac });
  l2.ports.set(NEAR.ifindex, { ...port, mac: NEAR.mac });
  l2.buckets.set(PORT, 'full');
  for (const address of [OWN.ipv4, OWN.ipv6]) l2.addresses.set({ ifindex: PORT, address }, true);
  const binding = { segment: SEGMENT, sequence: 0n };
  l2.fdb.set({ network: NETWORK, mac: OWN.mac }, { ...binding, ifindex: PORT });
  l2.fdb.set({ network: NETWORK, mac: NEAR.mac }, { ...binding, ifindex: NEAR.ifindex });
  l2.fdb.set({ network: NETWORK, mac: FAR.mac }, { ...binding, locator: FAR_LOCATOR });
  for (const { mac, ipv4, ipv6 } of [OWN, NEAR, FAR])
    for (const address of [ipv4, ipv6]) l2.neighbors.set({ network: NETWORK, address }, { mac });
};

const CONTEXT_BYTES = 192;
/** Places in struct __sk_buff. */
const [GSO_SEGS_AT, GSO_SIZE_AT] = [164, 176];

/** The context of a packet with that number of segments, or segments of that size. */
export const segmented = (field: 'segs' | 'size', value: number): Uint8Array => {
  const context = new Uint8Array(CONTEXT_BYTES);
  new DataView(context.buffer).setUint32(field === 'segs' ? GSO_SEGS_AT : GSO_SIZE_AT, value, true);
  return context;
};

export const runPort = (l2: L2Switch, data: Uint8Array, context?: Uint8Array): TestRunResult =>
  l2.object.program('unbounded_l2_port').testRun({ data, ...(context ? { context } : {}) });

/** What becomes of a frame of the port, and what was counted. */
export const outcomeAtPort = (
  l2: L2Switch,
  data: Uint8Array,
  context?: Uint8Array,
): [returnValue: number, counts: Partial<Record<L2Reason, number>>] => {
  const { returnValue } = runPort(l2, data, context);
  return [returnValue, l2.counts()];
};
/** A frame that another node sends to this one, as the device at the end of the route writes it. */
export const around = (frame: Uint8Array, more: Partial<Outer> = {}): Uint8Array =>
  outer(
    { mac: '02:00:00:00:00:bb', source: FAR_LOCATOR, destination: sid(LOCATOR, 1, NETWORK), hopLimit: 62, ...more },
    frame,
  );
export const runReceive = (l2: L2Switch, data: Uint8Array): TestRunResult =>
  l2.object.program('unbounded_l2_receive').testRun({ data });
