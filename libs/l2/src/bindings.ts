import type { FDBEntry, Neighbor, NetworkEndpoint } from '@unbounded/crds';
import { AddressSet, type Prefix, tryParseAddress } from '@unbounded/ip';
import type { L2Problem, PlannedNeighbor, PlannedStation } from './planned.ts';
import { endpointKey, type L2Snapshot } from './snapshot.ts';

/**
 * The entries of a network that count. A node writes entries for endpoints on it alone: what an entry says beyond its endpoint is not
 * believed, so that a compromised node cannot draw the traffic of others.
 */

export interface BoundNetwork {
  readonly number: number;
  readonly prefixes: readonly Prefix[];
  readonly endpoints: readonly NetworkEndpoint[];
  readonly segments: ReadonlyMap<string | undefined, number>;
  readonly fdbEntries: readonly FDBEntry[];
  readonly neighbors: readonly Neighbor[];
}

export interface Bindings {
  readonly fdb: readonly PlannedStation[];
  readonly neighbors: readonly PlannedNeighbor[];
  readonly problems: readonly L2Problem[];
}

type Found<T> = { readonly found: T } | { readonly problem: L2Problem };

const split = <T>(results: readonly Found<T>[]): { readonly all: T[]; readonly problems: L2Problem[] } => ({
  all: results.flatMap((one) => ('found' in one ? [one.found] : [])),
  problems: results.flatMap((one) => ('problem' in one ? [one.problem] : [])),
});

type Claim = NonNullable<(FDBEntry | Neighbor)['status']>;

/** The endpoint that an entry is for, if its node may say so. */
const endpointOf = (
  entry: FDBEntry | Neighbor,
  status: Claim,
  endpoints: ReadonlyMap<string, NetworkEndpoint>,
): Found<NetworkEndpoint> => {
  const about = { kind: entry.kind, name: entry.metadata.name } as const;
  const endpoint = endpoints.get(status.endpoint);
  if (!endpoint) {
    const remedy = 'the network has no such NetworkEndpoint: the entry is passed over';
    return {
      problem: { ...about, reason: 'NoSuchEndpoint', field: 'status.endpoint', value: status.endpoint, remedy },
    };
  }
  if (endpoint.spec.node !== status.managingNode) {
    const remedy = `the endpoint is on node ${endpoint.spec.node}: the entry is passed over`;
    const value = status.managingNode;
    return { problem: { ...about, reason: 'NotOfEndpoint', field: 'status.managingNode', value, remedy } };
  }
  return { found: endpoint };
};

/** Where an endpoint is, as seen from this node. */
/** Why frames for an endpoint of another node are dropped. */
const AWAY = {
  NoLocator: 'the node has no locator: frames for the endpoint are dropped until it has one',
  LocatorNotCarried:
    'no link of this node carries frames there (tunnelProtocol None does between nodes with IPv6 addresses, IPIP never): set tunnelProtocol: VXLAN, GENEVE or WireGuard, or give the nodes IPv6 addresses',
} as const;

const placeOf = (endpoint: NetworkEndpoint, snapshot: L2Snapshot): Found<PlannedStation['to']> => {
  const about = { kind: 'NetworkEndpoint', name: endpointKey(endpoint) } as const;
  const { node } = endpoint.spec;
  if (node === snapshot.node) {
    const device = snapshot.ports.get(endpointKey(endpoint));
    if (device !== undefined) return { found: { device } };
    const remedy = 'its interface is not on this node (any more): frames for it are dropped';
    return { problem: { ...about, reason: 'NoPort', field: 'spec.interface', value: endpoint.spec.interface, remedy } };
  }
  const locator = snapshot.locators.get(node);
  const isUnreached = snapshot.unreached.has(node);
  if (locator && !isUnreached) return { found: { locator } };
  const reason = locator ? 'LocatorNotCarried' : 'NoLocator';
  return { problem: { ...about, reason, field: 'spec.node', value: node, remedy: AWAY[reason] } };
};

const stationOf = (
  entry: FDBEntry,
  status: NonNullable<FDBEntry['status']>,
  { network, snapshot, endpoints }: Context,
): Found<PlannedStation> => {
  const about = { kind: 'FDBEntry', name: entry.metadata.name } as const;
  const claimed = endpointOf(entry, status, endpoints);
  if ('problem' in claimed) return claimed;
  const { spec } = claimed.found;
  if (spec.mac !== entry.spec.mac) {
    const remedy = `the endpoint has ${spec.mac}: the entry is passed over`;
    return { problem: { ...about, reason: 'NotOfEndpoint', field: 'spec.mac', value: entry.spec.mac, remedy } };
  }
  // The segment is the endpoint's: the entry repeats it for people.
  const segment = network.segments.get(spec.segment);
  if (segment === undefined) {
    const remedy = 'the network has no such segment: name one of spec.segments, or delete the pod';
    const value = spec.segment ?? '';
    return {
      problem: {
        ...{ kind: 'NetworkEndpoint', name: endpointKey(claimed.found), reason: 'NoSuchSegment' },
        ...{ field: 'spec.segment', value, remedy },
      },
    };
  }
  const to = placeOf(claimed.found, snapshot);
  if ('problem' in to) return to;
  const isTrusted = spec.isTrusted ?? false;
  return { found: { network: network.number, mac: entry.spec.mac, segment, isTrusted, to: to.found } };
};

const neighborOf = (
  entry: Neighbor,
  status: NonNullable<Neighbor['status']>,
  { network, endpoints, inside }: Context,
): Found<PlannedNeighbor> => {
  const about = { kind: 'Neighbor', name: entry.metadata.name } as const;
  const { ip } = entry.spec;
  const address = tryParseAddress(ip);
  if (!address || !inside.has(address)) {
    const remedy = 'must be in one of the prefixes of the network: the entry is passed over';
    return { problem: { ...about, reason: 'OutsidePrefixes', field: 'spec.ip', value: ip, remedy } };
  }
  const claimed = endpointOf(entry, status, endpoints);
  if ('problem' in claimed) return claimed;
  const { mac, addresses } = claimed.found.spec;
  if (!addresses.includes(ip) || mac !== status.mac) {
    const remedy = `the endpoint has ${mac} and ${addresses.join(', ') || 'no address'}: the entry is passed over`;
    const value = `${ip} at ${status.mac}`;
    return { problem: { ...about, reason: 'NotOfEndpoint', field: 'status.mac', value, remedy } };
  }
  return { found: { network: network.number, ip: address, mac } };
};

interface Context {
  readonly network: BoundNetwork;
  readonly snapshot: L2Snapshot;
  readonly endpoints: ReadonlyMap<string, NetworkEndpoint>;
  readonly inside: AddressSet;
}

/** An entry without a status has just been made: its node is about to write who it is for. */
export const findBindings = (snapshot: L2Snapshot, network: BoundNetwork): Bindings => {
  const context: Context = {
    ...{ network, snapshot, inside: AddressSet.of(network.prefixes) },
    endpoints: new Map(network.endpoints.map((endpoint) => [endpointKey(endpoint), endpoint])),
  };
  const stations = split(
    network.fdbEntries.flatMap((entry) => (entry.status ? [stationOf(entry, entry.status, context)] : [])),
  );
  const neighbors = split(
    network.neighbors.flatMap((entry) => (entry.status ? [neighborOf(entry, entry.status, context)] : [])),
  );
  return { fdb: stations.all, neighbors: neighbors.all, problems: [...stations.problems, ...neighbors.problems] };
};
