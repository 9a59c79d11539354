import type { Network, NetworkEndpoint } from '@unbounded/crds';
import { createdMs } from './cluster-snapshot.ts';
import type { L2Problem } from './planned.ts';
import { endpointKey } from './snapshot.ts';

/**
 * Endpoints that count. A node writes those on it itself: what one node writes beyond what it can have must not take the room of others
 * in the maps of all. And the API server applies a Network's selectors when an endpoint is made: to one that was there before its Network
 * nobody has applied them. An agent reads the Network first.
 */

/** As many ports as a node's map has room for (unbounded_l2_ports). */
export const MOST_ENDPOINTS_OF_NODE = 1024;

export interface CountedEndpoints {
  readonly counted: readonly NetworkEndpoint[];
  /** NAMESPACE/NAME. */
  readonly passedOver: ReadonlySet<string>;
  /** One for each node that has too many, and for each with some that are older than their Network. */
  readonly problems: readonly L2Problem[];
}

const byAge = (a: NetworkEndpoint, b: NetworkEndpoint): number =>
  createdMs(a) - createdMs(b) || (endpointKey(a) < endpointKey(b) ? -1 : 1);

const problemOf = (node: string, count: number, first: NetworkEndpoint): L2Problem => ({
  ...{ kind: 'NetworkEndpoint', name: endpointKey(first), reason: 'TooManyEndpoints', field: 'spec.node', value: node },
  remedy: `the node has ${count} endpoints, and the oldest ${MOST_ENDPOINTS_OF_NODE} count: spread its pods, or look who writes endpoints in its name`,
});

const isOlder = (endpoint: NetworkEndpoint, network: Network | undefined): boolean =>
  network?.metadata.creationTimestamp !== undefined && createdMs(endpoint) < createdMs(network);

const olderProblem = ([first, ...others]: readonly NetworkEndpoint[]): L2Problem => ({
  ...{ kind: 'NetworkEndpoint', name: endpointKey(first!), reason: 'OlderThanNetwork' },
  ...{ field: 'metadata.creationTimestamp', value: first!.metadata.creationTimestamp ?? '' },
  remedy: `it and ${others.length} more of its node are older than their Network (${first!.spec.network}), whose selectors were not applied to them, and do not count: delete the pod, or the endpoint where the pod has none`,
});

/** The oldest of each node, of those that are not older than their Network. */
export const countEndpoints = (
  endpoints: readonly NetworkEndpoint[],
  networks: readonly Network[],
): CountedEndpoints => {
  const byName = new Map(networks.map((network) => [network.metadata.name, network]));
  const { older = [], others = [] } = Object.groupBy(endpoints, (endpoint) =>
    isOlder(endpoint, byName.get(endpoint.spec.network)) ? 'older' : 'others',
  );
  const crowded = [...Map.groupBy(others, ({ spec }) => spec.node)]
    .filter(([, own]) => own.length > MOST_ENDPOINTS_OF_NODE)
    .map(([node, own]) => ({ node, count: own.length, late: own.toSorted(byAge).slice(MOST_ENDPOINTS_OF_NODE) }));
  const passedOver = new Set([...older, ...crowded.flatMap(({ late }) => late)].map(endpointKey));
  return {
    counted: passedOver.size === 0 ? endpoints : endpoints.filter((one) => !passedOver.has(endpointKey(one))),
    passedOver,
    problems: [
      ...[...Map.groupBy(older, ({ spec }) => spec.node).values()].map(olderProblem),
      ...crowded.map(({ node, count, late }) => problemOf(node, count, late[0]!)),
    ],
  };
};
