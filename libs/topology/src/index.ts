export { advertisedRoutes } from './routing/advertised-routes.ts';
export { competingLanes, type LaneSeen, type ProbeSeen, rotationWaits, type WaitReason } from './links/key-rotation.ts';
export { type PoolReach, reachOfPools } from './routing/pool-reach.ts';
export type { Holding } from './world/holdings.ts';
export { holdingsOf } from './routing/kept-holdings.ts';
export type { DataplaneKind, LocalNode, ProtectedAddress } from './links/local-node.ts';
export { laneId } from './links/lanes.ts';
export { peerDevice } from './links/next-hops.ts';
export { withoutProtected } from './routing/kept-plan.ts';
export { findMember, planNode } from './node.plan.ts';
export { parseWorld } from './world/parse-world.ts';
export {
  DEVICES,
  type GroupPlan,
  type NextHop,
  type NodePlan,
  type ProbePlan,
  type RoutePlan,
  type RouteVia,
  TUNNEL_VNI,
  type TunnelKind,
  type TunnelPlan,
} from './plan.ts';
export type { NodeRelay } from './world/relay-model.ts';
export type { WireGuardInterfacePlan, WireGuardPeerPlan } from './plan.ts';
export type { SiteModel, TopologyObjects, World } from './world/world.ts';
export type { Problem } from './world/problem.ts';
export { changedPrefixes, plainPrefixes, planTransition } from './routing/transition.ts';
