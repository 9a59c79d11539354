import {
  MAX_L2_NETWORK_NODES,
  MAX_L2_NETWORK_NUMBER,
  type Network,
  type NetworkEndpoint,
  PROTECTION_FINALIZER,
} from '@unbounded/crds';
import { createdMs, type HostingNode, type L2ClusterSnapshot } from './cluster-snapshot.ts';
import { checkNetwork } from './network-checks.ts';
import type { NetworkCondition } from './network-condition.ts';
import { stateMtu } from './network-mtu.ts';
import { nodesFit, nodesForward } from './network-nodes.ts';
import { assignNumbers } from './numbers.ts';

/** What the controller writes of one Network. */
export interface NetworkPlan {
  readonly network: Network;
  /** A Network keeps its object, and by it its number, until no endpoint stands. */
  readonly isProtected: boolean;
  readonly fields: {
    readonly number?: number;
    readonly mtu?: number;
    readonly endpoints: number;
    readonly nodes: readonly string[];
  };
  readonly conditions: readonly NetworkCondition[];
}

const isProtected = ({ metadata }: Network): boolean => metadata.finalizers?.includes(PROTECTION_FINALIZER) ?? false;

/** A number is given only to a Network that cannot go while its endpoints stand. */
const numbersOf = (networks: readonly Network[]): ReadonlyMap<string, number> =>
  assignNumbers(
    networks
      .filter((network) => isProtected(network) || network.status?.number !== undefined)
      .map((network) => ({
        ...{ name: network.metadata.name, createdMs: createdMs(network) },
        ...(network.status?.number === undefined ? {} : { number: network.status.number }),
      })),
  );

const numbered = (network: Network, number: number | undefined): NetworkCondition => {
  const type = 'Numbered';
  if (number !== undefined) {
    const message = `${number} is this Network's in frames between nodes`;
    return { type, status: 'True', reason: 'Numbered', message };
  }
  if (!isProtected(network)) {
    const message = `metadata.finalizers: without ${PROTECTION_FINALIZER}, which comes before the number`;
    return { type, status: 'Unknown', reason: 'NotProtected', message };
  }
  const message = `metadata.name "${network.metadata.name}": all numbers to ${MAX_L2_NETWORK_NUMBER} are taken: delete Networks that nobody uses`;
  return { type, status: 'False', reason: 'NumbersExhausted', message };
};

/** Nodes that are listed stay so: a further one does not displace them. */
const hostsOf = ({ status }: Network, endpoints: readonly NetworkEndpoint[]) => {
  const all = new Set(endpoints.map(({ spec }) => spec.node));
  const listed = (status?.nodes ?? []).filter((node) => all.has(node));
  const others = [...all.difference(new Set(listed))].sort();
  const ranked = [...listed, ...others];
  return { hosts: ranked.slice(0, MAX_L2_NETWORK_NODES).sort(), excess: ranked.slice(MAX_L2_NETWORK_NODES) };
};

const readiness = (others: readonly NetworkCondition[]): NetworkCondition => {
  const type = 'Ready';
  const failed = others.find(({ status }) => status === 'False') ?? others.find(({ status }) => status === 'Unknown');
  if (!failed) return { type, status: 'True', reason: 'Ready', message: 'nodes carry its frames' };
  return { type, status: failed.status, reason: failed.reason, message: `${failed.type} is ${failed.status}` };
};

/** Why a deleted Network is still there; nothing for one that is not deleted. */
const deletability = ({ metadata }: Network, count: number): NetworkCondition[] => {
  if (metadata.deletionTimestamp === undefined || count === 0) return [];
  const message = `endpoints: ${count}; the Network goes when the last one is gone: delete the pods that are attached`;
  return [{ type: 'Deletable', status: 'False', reason: 'InUse', message }];
};

interface Surroundings {
  readonly number: number | undefined;
  readonly endpoints: readonly NetworkEndpoint[];
  readonly nodes: ReadonlyMap<string, HostingNode>;
}

const planNetwork = (network: Network, { number, endpoints, nodes }: Surroundings): NetworkPlan => {
  const { hosts, excess } = hostsOf(network, endpoints);
  const { mtu, condition } = stateMtu(network, hosts, nodes);
  const conditions = [
    checkNetwork(network),
    numbered(network, number),
    condition,
    nodesFit(excess),
    nodesForward(hosts, nodes),
  ];
  return {
    network,
    isProtected: network.metadata.deletionTimestamp === undefined || endpoints.length > 0,
    fields: {
      ...(number === undefined ? {} : { number }),
      ...(mtu === undefined ? {} : { mtu }),
      ...{ endpoints: endpoints.length, nodes: hosts },
    },
    conditions: [...conditions, readiness(conditions), ...deletability(network, endpoints.length)],
  };
};

/** Every Network on its own, but for the numbers. Nothing while the lists are not complete: somebody's number would seem free. */
export const planNetworks = ({ isComplete, networks, endpoints, nodes }: L2ClusterSnapshot): readonly NetworkPlan[] => {
  if (!isComplete) return [];
  const numbers = numbersOf(networks);
  const byNetwork = Map.groupBy(endpoints, ({ spec }) => spec.network);
  const byName = new Map(nodes.map((node) => [node.metadata.name, node]));
  return networks.map((network) => {
    const { name } = network.metadata;
    return planNetwork(network, { number: numbers.get(name), endpoints: byNetwork.get(name) ?? [], nodes: byName });
  });
};
