import type { NetworkEndpoint } from '@unbounded/crds';
import { createdMs } from './cluster-snapshot.ts';
import type { L2Problem } from './planned.ts';
import { endpointKey } from './snapshot.ts';

/**
 * Endpoints that count. A node writes those on it itself: what one node writes beyond what it can have must not take the room of others
 * in the maps of all.
 */

/** As many ports as a node's map has room for (unbounded_l2_ports). */
export const MOST_ENDPOINTS_OF_NODE = 1024;

export interface CountedEndpoints {
  readonly counted: readonly NetworkEndpoint[];
  /** NAMESPACE/NAME. */
  readonly passedOver: ReadonlySet<string>;
  /** One for each such node. */
  readonly problems: readonly L2Problem[];
}

const byAge = (a: NetworkEndpoint, b: NetworkEndpoint): number =>
  createdMs(a) - createdMs(b) || (endpointKey(a) < endpointKey(b) ? -1 : 1);

const problemOf = (node: string, count: number, first: NetworkEndpoint): L2Problem => ({
  ...{ kind: 'NetworkEndpoint', name: endpointKey(first), reason: 'TooManyEndpoints', field: 'spec.node', value: node },
  remedy: `the node has ${count} endpoints, and the oldest ${MOST_ENDPOINTS_OF_NODE} count: spread its pods, or look who writes endpoints in its name`,
});

/** The oldest of each node. */
export const countEndpoints = (endpoints: readonly NetworkEndpoint[]): CountedEndpoints => {
  const crowded = [...Map.groupBy(endpoints, ({ spec }) => spec.node)]
    .filter(([, own]) => own.length > MOST_ENDPOINTS_OF_NODE)
    .map(([node, own]) => ({ node, count: own.length, late: own.toSorted(byAge).slice(MOST_ENDPOINTS_OF_NODE) }));
  const passedOver = new Set(crowded.flatMap(({ late }) => late.map(endpointKey)));
  return {
    counted: passedOver.size === 0 ? endpoints : endpoints.filter((one) => !passedOver.has(endpointKey(one))),
    passedOver,
    problems: crowded.map(({ node, count, late }) => problemOf(node, count, late[0]!)),
  };
};
