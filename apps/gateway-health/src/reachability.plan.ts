import { parseWorld, type PoolReach, reachOfPools, type TopologyObjects } from '@unbounded/topology';

/** What decides about reach: the pools with the gateways that their status is about to list. */
export type ReachObjects = Omit<TopologyObjects, 'slices'>;

/**
 * For every pool the Sites that it is connected with and those that it reaches, as the planner of the agents routes. Without
 * slices: workers are on no route between pools, and which node has a key or a block that two of them state is settled
 * before a pool lists its gateways. So the cost grows with gateways, pools and Sites, not with nodes. Without holdings, too: as
 * an agent reads the objects that has no plan yet.
 */
export const planReach = (objects: ReachObjects): ReadonlyMap<string, PoolReach> =>
  reachOfPools(parseWorld({ ...objects, slices: [] }));

/** Objects that a join names and that do not exist. */
export const missingNames = (names: readonly string[], existing: ReadonlySet<string>): readonly string[] =>
  names.filter((name) => !existing.has(name));
