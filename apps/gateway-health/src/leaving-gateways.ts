import type { GatewayPool, SiteNodeSlice } from '@unbounded/crds';
import type { NodeFacts } from '@unbounded/membership';

/**
 * Gateways that no pool takes any more: site-membership lists them in a slice. Until it does they stay in the status of their pool: a
 * node that neither lists is cut off from all others.
 */

/** Of a site-membership that lists nobody, the longest that a node may go on as a gateway. */
const LONGEST_MS = 30_000;

export interface Leaving {
  readonly node: NodeFacts;
  readonly pool: GatewayPool;
}

/**
 * Nodes of a Site, with a key, that a pool's status lists and no slice.
 * @param isMember those that a pool takes leave nothing
 */
export const leavingGateways = (
  { pools, slices }: { readonly pools: readonly GatewayPool[]; readonly slices: readonly SiteNodeSlice[] },
  nodes: readonly NodeFacts[],
  isMember: (node: NodeFacts) => boolean,
  siteOf: (node: NodeFacts) => string | undefined,
): Leaving[] => {
  const listing = new Map(pools.flatMap((pool) => pool.status?.nodes?.map(({ name }) => [name, pool] as const) ?? []));
  const candidates = nodes.filter(
    (node) =>
      listing.has(node.name) && !isMember(node) && node.wireGuardPublicKey !== undefined && siteOf(node) !== undefined,
  );
  if (candidates.length === 0) return []; // as nearly always: slices are long
  const sliced = new Set(slices.flatMap(({ nodes: entries = [] }) => entries.map(({ name }) => name)));
  return candidates.filter(({ name }) => !sliced.has(name)).map((node) => ({ node, pool: listing.get(node.name)! }));
};

/**
 * Those that may still stay, of all that leave at this moment.
 * @param elapsed milliseconds on a clock that only goes forward
 */
export const createLeavingWatch = (elapsed: () => number): ((leaving: readonly Leaving[]) => Leaving[]) => {
  let since = new Map<string, number>();
  return (leaving) => {
    const nowMs = elapsed();
    since = new Map(leaving.map(({ node: { name } }) => [name, since.get(name) ?? nowMs]));
    return leaving.filter(({ node: { name } }) => nowMs - since.get(name)! < LONGEST_MS);
  };
};
