export { advertisedRoutes } from './routing/advertised-routes.ts';
export { competingLanes, type LaneSeen, type ProbeSeen, rotationWaits, type WaitReason } from './links/key-rotation.ts';
export { type PoolReach, reachOfPools } from './routing/pool-reach.ts';
export type { Holding } from './world/holdings.ts';
export type { LocalNode, ProtectedAddress } from './links/local-node.ts';
export { echoAddress } from './links/echoes.plan.ts';
export { laneId } from './links/lanes.ts';
export { withoutProtected } from './routing/kept-plan.ts';
export { findMember, planNode } from './node.plan.ts';
export { nodeLocators } from './world/node-locators.ts';
export { nodeAddresses, type NodeAddresses } from './world/node-addresses.ts';
export { parseWorld } from './world/parse-world.ts';
export type {
  BlockPlan,
  BoundaryPlan,
  Destination,
  EchoPlan,
  GroupPlan,
  LocatorPlan,
  NextHop,
  NodePlan,
  ProbePlan,
  TunnelPeer,
} from './plan.ts';
export type { NodeRelay } from './world/relay-model.ts';
export type { WireGuardInterfacePlan, WireGuardPeerPlan } from './plan.ts';
export type { Member, SiteModel, TopologyObjects, World } from './world/world.ts';
export type { Problem } from './world/problem.ts';
export { type ChangedWays, changedWays, isNative, openWays } from './routing/changed-ways.ts';
export { planTransitions, type Transition } from './routing/transition.ts';
