export { type AskedNetwork, readAskedNetwork } from './asked-network.ts';
export { attachmentOf } from './attachment.ts';
export type { HostingNode, L2ClusterSnapshot } from './cluster-snapshot.ts';
export { MOST_ENDPOINTS_OF_NODE } from './counted-endpoints.ts';
export { type EndpointWish, planEndpoint, type PlannedEndpoint } from './endpoint-plan.ts';
export { fdbEntryName, neighborName } from './entry-names.ts';
export { addressesOfPort, withLinkLocals } from './link-local.ts';
export { isStationMac, localMac } from './mac.ts';
export { networkMtu } from './mtu.ts';
export { type NetworkPlan, planNetworks } from './network-plan.ts';
export { L2_NODE_CONDITION } from './network-nodes.ts';
export { assignNumbers } from './numbers.ts';
export {
  isBound,
  isListed,
  isNodeGone,
  isPodElsewhere,
  isPodGone,
  type L2Entry,
  planRemovals,
  podKey,
  podsByKey,
  type Removal,
} from './orphans.ts';
export { planL2 } from './plan.ts';
export { isOfPart, type L2Plan, type L2Problem } from './planned.ts';
export { parsePodNetworks } from './pod-networks.ts';
export { chooseAddresses, type Pool, PoolExhaustedError } from './pool.ts';
export { endpointKey, type L2Snapshot } from './snapshot.ts';
