import {
  type L2Address,
  type L2Config,
  type L2CounterKey,
  type L2FdbEntry,
  type L2Flood,
  L2_FLOOD_NODES,
  L2_FLOOD_PORTS,
  L2_MAPS,
  type L2Mac,
  type L2Neighbor,
  type L2NeighborAddress,
  type L2Network,
  type L2Port,
  L2_REASONS,
  type L2SegmentPair,
} from '@unbounded/bpf-maps/l2';
import { formatAddress, type Prefix } from '@unbounded/ip';
import { addressesOfPort, type L2Plan, withLinkLocals } from '@unbounded/l2';
import type { Problem } from '@unbounded/topology';

/** The contents of the maps for a plan: names of devices become numbers. What is not on the node has no record. */

/** In the order in which they are written. */
export type Entries<K, V> = readonly (readonly [key: K, value: V])[];

export interface L2Tables {
  readonly config: Entries<0, L2Config>;
  readonly networks: Entries<number, L2Network>;
  readonly segments: Entries<L2SegmentPair, true>;
  readonly addresses: Entries<L2Address, true>;
  readonly ports: Entries<number, L2Port>;
  readonly fdb: Entries<L2Mac, L2FdbEntry>;
  readonly neighbors: Entries<L2NeighborAddress, L2Neighbor>;
  readonly flood: Entries<number, L2Flood>;
  /** Of each port; what the kernel writes there later is its own. */
  readonly buckets: Entries<number, 'full'>;
  readonly counters: Entries<L2CounterKey, bigint>;
  /** What the maps have no room for. All else is in force nevertheless. */
  readonly limits: readonly Problem[];
}

/** What a plan does not know of its node. */
export interface L2Place {
  readonly locator: Prefix;
  /** The device by which frames enter the node's forwarding. */
  readonly entry: { readonly index: number; readonly mac: string };
  /** By name: those of ports that are there. */
  readonly ifindexes: ReadonlyMap<string, number>;
}

/**
 * Copies that are made of the frames of one port, for other nodes and for ports of this one: enough for announcements and
 * groups that speak now and then, too few for a storm. At once: twice what one frame can need, and half of what the queue
 * of a WireGuard device holds.
 */
const COPIES_PER_SECOND = 2500;
const COPIES_AT_ONCE = 250;

const locatorText = ({ family, address }: Prefix): string => formatAddress({ family, value: address });

const flagOf = <Name extends string>(name: Name, isSet: boolean) =>
  (isSet ? { [name]: true } : {}) as { readonly [N in Name]?: true };

const networkRecord = ({ mtu, replicates }: L2Plan['networks'][number]): L2Network => ({
  ...flagOf('unknown', replicates.unknownUnicast),
  ...flagOf('broadcast', replicates.broadcast),
  ...flagOf('multicast', replicates.multicast),
  mtu,
});

/** This node's own come first, and what is beyond the map's room last: pods of this node do not wait for what others write. */
const ownFirst = <T>(entries: readonly T[], isOwn: (entry: T) => boolean): readonly T[] => [
  ...entries.filter(isOwn),
  ...entries.filter((entry) => !isOwn(entry)),
];

interface Room<T> {
  readonly entries: readonly T[];
  readonly problems: readonly Problem[];
}

const withinRoom = <T>(map: 'unbounded_l2_fdb' | 'unbounded_l2_neighbors', entries: readonly T[]): Room<T> => {
  const { maxEntries } = L2_MAPS[map];
  const message = `map ${map} has room for ${maxEntries} of ${entries.length} entries: those of this node are in it; spread the pods of its Networks over fewer Networks for each node`;
  return entries.length <= maxEntries
    ? { entries, problems: [] }
    : { entries: entries.slice(0, maxEntries), problems: [{ reason: 'MapFull', message }] };
};

/** As many as a record holds, the first ones; the others are a problem. */
const floodOf = (
  { number, name, replicas }: L2Plan['networks'][number],
  ports: readonly number[],
): { readonly record: readonly [number, L2Flood]; readonly problems: readonly Problem[] } => {
  const record = {
    ports: ports.slice(0, L2_FLOOD_PORTS),
    locators: replicas.slice(0, L2_FLOOD_NODES).map(locatorText),
  };
  const isWhole = ports.length <= L2_FLOOD_PORTS && replicas.length <= L2_FLOOD_NODES;
  const message = `Network ${name} has ${ports.length} ports on this node and ${replicas.length} other nodes: what is replicated reaches ${L2_FLOOD_PORTS} ports and ${L2_FLOOD_NODES} nodes at most; spread its pods over more Networks, or fewer nodes`;
  return { record: [number, record], problems: isWhole ? [] : [{ reason: 'NetworkTooLarge', message }] };
};

interface Port {
  readonly ifindex: number;
  readonly planned: L2Plan['ports'][number];
}

const portRecord = ({ network, segment, mac, isTrusted }: Port['planned']): L2Port => ({
  ...{ network, segment, mac, rate: COPIES_PER_SECOND, burst: COPIES_AT_ONCE },
  ...flagOf('trusted', isTrusted),
});

const fdbRecords = (
  { network, mac, segment, isTrusted, to }: L2Plan['fdb'][number],
  ifindexes: L2Place['ifindexes'],
): readonly (readonly [L2Mac, L2FdbEntry])[] => {
  const common = { segment, sequence: 0n, ...flagOf('trusted', isTrusted) };
  if ('locator' in to)
    return [
      [
        { network, mac },
        { ...common, locator: locatorText(to.locator) },
      ],
    ];
  const ifindex = ifindexes.get(to.device);
  return ifindex === undefined
    ? []
    : [
        [
          { network, mac },
          { ...common, ifindex },
        ],
      ];
};

const planFdb = ({ fdb }: L2Plan, ifindexes: L2Place['ifindexes']): Room<readonly [L2Mac, L2FdbEntry]> =>
  withinRoom(
    'unbounded_l2_fdb',
    ownFirst(fdb, ({ to }) => 'device' in to).flatMap((station) => fdbRecords(station, ifindexes)),
  );

const planNeighbors = ({ ports, neighbors }: L2Plan): Room<readonly [L2NeighborAddress, L2Neighbor]> => {
  const keyOf = ({ network, mac }: { readonly network: number; readonly mac: string }): string => `${network} ${mac}`;
  const own = new Set(ports.map(keyOf));
  return withinRoom(
    'unbounded_l2_neighbors',
    ownFirst(withLinkLocals(neighbors), (one) => own.has(keyOf(one))).map(
      ({ network, ip, mac }) => [{ network, address: formatAddress(ip) }, { mac }] as const,
    ),
  );
};

export const planL2Tables = (plan: L2Plan, { locator, entry, ifindexes }: L2Place): L2Tables => {
  const ports = plan.ports.flatMap((planned): Port[] => {
    const ifindex = ifindexes.get(planned.device);
    return ifindex === undefined ? [] : [{ ifindex, planned }];
  });
  const flood = plan.networks.map((network) =>
    floodOf(
      network,
      ports.filter(({ planned }) => planned.network === network.number).map(({ ifindex }) => ifindex),
    ),
  );
  const [fdb, neighbors] = [planFdb(plan, ifindexes), planNeighbors(plan)];
  return {
    config: [[0, { locator: locatorText(locator), ifindex: entry.index, mac: entry.mac }]],
    networks: plan.networks.map((network) => [network.number, networkRecord(network)]),
    segments: plan.networks.flatMap(({ number, segmentPairs }) =>
      segmentPairs.map(([from, to]) => [{ network: number, from, to }, true] as const),
    ),
    addresses: ports.flatMap(({ ifindex, planned }) =>
      addressesOfPort(planned).map((address) => [{ ifindex, address: formatAddress(address) }, true] as const),
    ),
    ports: ports.map(({ ifindex, planned }) => [ifindex, portRecord(planned)]),
    fdb: fdb.entries,
    neighbors: neighbors.entries,
    flood: flood.map(({ record }) => record),
    buckets: ports.map(({ ifindex }) => [ifindex, 'full']),
    counters: ports.flatMap(({ ifindex }) => L2_REASONS.map((reason) => [{ ifindex, reason }, 0n] as const)),
    limits: [...flood, fdb, neighbors].flatMap(({ problems }) => problems),
  };
};
