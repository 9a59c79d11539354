import type { FDBEntry, Neighbor, Network, NetworkEndpoint } from '@unbounded/crds';
import { parseAddress, parsePrefix } from '@unbounded/ip';
import { findBindings } from './bindings.ts';
import { countEndpoints } from './counted-endpoints.ts';
import type { L2Plan, PlannedNetwork, PlannedPort } from './planned.ts';
import { endpointKey, type L2Snapshot } from './snapshot.ts';
import { segmentNumbers, segmentPairs } from './segments.ts';

/** A Network that frames can be carried for: it has a number and an MTU. */
interface Hosted {
  readonly network: Network;
  readonly number: number;
  readonly mtu: number;
  readonly endpoints: readonly NetworkEndpoint[];
  readonly segments: ReadonlyMap<string | undefined, number>;
}

const hostedNetworks = ({ node, networks, endpoints }: L2Snapshot): Hosted[] => {
  const byNetwork = Map.groupBy(endpoints, ({ spec }) => spec.network);
  return networks.flatMap((network): Hosted[] => {
    const { number, mtu } = network.status ?? {};
    const own = byNetwork.get(network.metadata.name) ?? [];
    if (number === undefined || mtu === undefined || !own.some(({ spec }) => spec.node === node)) return [];
    return [{ network, number, mtu, endpoints: own, segments: segmentNumbers(network) }];
  });
};

const planNetwork = (hosted: Hosted, snapshot: L2Snapshot): PlannedNetwork => {
  const { network, number, mtu, endpoints, segments } = hosted;
  const { unknownUnicast, broadcast, multicast } = network.spec;
  const others = new Set(endpoints.map(({ spec }) => spec.node));
  others.delete(snapshot.node);
  const reached = others.difference(snapshot.unreached);
  const replicas = [...reached].sort().flatMap((node) => snapshot.locators.get(node) ?? []);
  return {
    ...{ number, mtu, replicas, name: network.metadata.name },
    replicates: {
      unknownUnicast: unknownUnicast === 'Replicate',
      broadcast: broadcast === 'Replicate',
      multicast: multicast === 'Replicate',
    },
    segmentPairs: segmentPairs(network, segments),
  };
};

const planPorts = ({ number, endpoints, segments }: Hosted, { node, ports }: L2Snapshot): PlannedPort[] =>
  endpoints.flatMap((endpoint): PlannedPort[] => {
    const { spec } = endpoint;
    const device = spec.node === node ? ports.get(endpointKey(endpoint)) : undefined;
    const segment = segments.get(spec.segment);
    if (device === undefined || segment === undefined) return [];
    const addresses = spec.addresses.map(parseAddress);
    return [{ device, network: number, segment, mac: spec.mac, addresses, isTrusted: spec.isTrusted ?? false }];
  });

export const planL2 = (given: L2Snapshot): L2Plan => {
  const { counted: endpoints, passedOver, problems } = countEndpoints(given.endpoints, given.networks);
  const snapshot = { ...given, endpoints };
  const hosted = hostedNetworks(snapshot);
  const isCounted = ({ status }: FDBEntry | Neighbor): boolean => !status || !passedOver.has(status.endpoint);
  const fdbEntries = Map.groupBy(snapshot.fdbEntries.filter(isCounted), ({ spec }) => spec.network);
  const neighbors = Map.groupBy(snapshot.neighbors.filter(isCounted), ({ spec }) => spec.network);
  const plans = hosted.map((one) => {
    const { name } = one.network.metadata;
    const entries = { fdbEntries: fdbEntries.get(name) ?? [], neighbors: neighbors.get(name) ?? [] };
    return findBindings(snapshot, { ...one, ...entries, prefixes: one.network.spec.prefixes.map(parsePrefix) });
  });
  return {
    networks: hosted.map((one) => planNetwork(one, snapshot)),
    ports: hosted.flatMap((one) => planPorts(one, snapshot)),
    fdb: plans.flatMap(({ fdb }) => fdb),
    neighbors: plans.flatMap((plan) => plan.neighbors),
    problems: [...problems, ...plans.flatMap((plan) => plan.problems)],
  };
};
