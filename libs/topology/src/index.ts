export { advertisedRoutes } from './advertised-routes.ts';
export { isUsable, poolDistances, servedSites, servingPools } from './distances.ts';
export { DEFAULT_HEALTH, type HealthSettings, parseIntervalMs } from './health-settings.ts';
export {
  competingLanes,
  type LaneSeen,
  type ProbeSeen,
  type RotationFacts,
  rotationWaits,
  type WaitReason,
} from './key-rotation.ts';
export { type Holding, holdingsOf } from './holdings.ts';
export type { DataplaneKind, LinkRole, LocalNode, PeerLink, ProtectedAddress } from './links.ts';
export { laneId, planLinks } from './links.ts';
export { peerDevice } from './next-hops.ts';
export { withoutProtected } from './kept-plan.ts';
export { findMember, planNode } from './node.plan.ts';
export { parseWorld } from './parse-world.ts';
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
export { type LinkFacts, OVERHEAD_BYTES, overheadBytes, type Resolution, resolveProtocol } from './protocol.ts';
export { assignedSites, connectedSites, meshSites, networkSites, peeredPools, poolsOfSite } from './reach.ts';
export type { NodeRelay, RelayedPeer, RelayModel, RelayTrust } from './relay.ts';
export type { WireGuardInterfacePlan, WireGuardPeerPlan } from './wireguard.plan.ts';
export type { LinkScope, Member, PoolModel, Problem, SiteModel, TopologyObjects, World } from './world.ts';
export { changedPrefixes, plainPrefixes, planTransition, type TransitionStep } from './transition.ts';
