import { FIRST_GATEWAY_WIREGUARD_PORT, LAST_GATEWAY_WIREGUARD_PORT } from '@unbounded/crds';

/** What is known about a gateway's port from earlier: the pool's status first, the node's annotation second. */
export interface PortClaims {
  readonly node: string;
  /** Sorts by age: of equal claims the older Node's is granted. */
  readonly age: string;
  readonly fromStatus?: number | undefined;
  readonly fromAnnotation?: number | undefined;
}

const isUsable = (port: number | undefined): port is number =>
  port !== undefined &&
  Number.isInteger(port) &&
  port >= FIRST_GATEWAY_WIREGUARD_PORT &&
  port <= LAST_GATEWAY_WIREGUARD_PORT;

/**
 * A UDP port for every gateway, unique in the cluster. A port once given stays: peers have interfaces by that number.
 * A claim that an older gateway has made too is not granted; a gateway without one gets the lowest free port, older ones first.
 * When all 3,399 are given, the rest stays without.
 */
export const planPorts = (claims: readonly PortClaims[]): ReadonlyMap<string, number> => {
  const sorted = claims.toSorted((a, b) => (a.age === b.age ? (a.node < b.node ? -1 : 1) : a.age < b.age ? -1 : 1));
  const given = new Map<string, number>();
  const used = new Set<number>();
  const give = (node: string, port: number): void => {
    given.set(node, port);
    used.add(port);
  };
  for (const source of ['fromStatus', 'fromAnnotation'] as const) {
    for (const claim of sorted) {
      const port = claim[source];
      if (!given.has(claim.node) && isUsable(port) && !used.has(port)) give(claim.node, port);
    }
  }
  let next = FIRST_GATEWAY_WIREGUARD_PORT;
  for (const { node } of sorted) {
    if (given.has(node)) continue;
    while (used.has(next)) next++;
    if (next <= LAST_GATEWAY_WIREGUARD_PORT) give(node, next);
  }
  return given;
};
