export type { LinkRole, LocalNode, PeerLink } from './links.ts';
export { planLinks } from './links.ts';
export {
  DEVICES,
  type EndpointPlan,
  findMember,
  type GroupPlan,
  type MasqueradePlan,
  type NextHop,
  type NodePlan,
  planNode,
  type RoutePlan,
  TUNNEL_VNI,
  type TunnelKind,
} from './node.plan.ts';
export { type LinkFacts, OVERHEAD_BYTES, type Resolution, resolveProtocol } from './protocol.ts';
export { assignedSites, connectedSites, networkSites, peeredPools, poolsOfSite, reachThrough } from './reach.ts';
export type { WireGuardInterfacePlan, WireGuardPeerPlan } from './wireguard.plan.ts';
export {
  type LinkScope,
  type Member,
  parseWorld,
  type PoolModel,
  type Problem,
  type SiteModel,
  type TopologyObjects,
  type World,
} from './world.ts';
