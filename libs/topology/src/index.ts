export { advertisedRoutes } from './routing/advertised-routes.ts';
export { poolDistances, servedSites, servingPools } from './routing/distances.ts';
export { type PoolReach, reachOfPools } from './routing/pool-reach.ts';
export { isUsable } from './world/usable.ts';
export { DEFAULT_HEALTH, type HealthSettings, parseIntervalMs } from './world/health-settings.ts';
export {
  competingLanes,
  type LaneSeen,
  type ProbeSeen,
  type RotationFacts,
  rotationWaits,
  type WaitReason,
} from './links/key-rotation.ts';
export type { Holding } from './world/holdings.ts';
export { holdingsOf } from './routing/kept-holdings.ts';
export type { LinkRole, PeerLink } from './links/links.plan.ts';
export type { DataplaneKind, LocalNode, ProtectedAddress } from './links/local-node.ts';
export { planLinks } from './links/links.plan.ts';
export { laneId } from './links/lanes.ts';
export { peerDevice } from './links/next-hops.ts';
export { withoutProtected } from './routing/kept-plan.ts';
export { findMember, planNode } from './node.plan.ts';
export { parseWorld } from './world/parse-world.ts';
export {
  DEVICES,
  type EndpointPlan,
  type GroupMember,
  type GroupPlan,
  type MasqueradePlan,
  type NextHop,
  type NodePlan,
  type ProbePlan,
  ROUTE_TABLES,
  type RoutePlan,
  type RouteVia,
  TUNNEL_VNI,
  type TunnelEnds,
  type TunnelKind,
  type TunnelPlan,
  type TunnelSender,
} from './plan.ts';
export { type LinkFacts, OVERHEAD_BYTES, overheadBytes, type Resolution, resolveProtocol } from './links/protocol.ts';
export { assignedSites, meshSites, networkSites, peeredPools, poolsOfSite } from './world/reach.ts';
export type { NodeRelay, RelayedPeer, RelayModel, RelayTrust } from './world/relay-model.ts';
export type { WireGuardInterfacePlan, WireGuardPeerPlan } from './plan.ts';
export type { LinkScope, Member, PoolModel, SiteModel, TopologyObjects, World } from './world/world.ts';
export type { Problem } from './world/problem.ts';
export { changedPrefixes, plainPrefixes, planTransition, type TransitionStep } from './routing/transition.ts';
