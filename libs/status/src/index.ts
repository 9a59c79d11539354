export { type ClusterView, clusterView } from './view/cluster-view.ts';
export { composeView } from './view/compose.ts';
export {
  type ClusterNode,
  type ClusterPool,
  type ClusterSite,
  isLost,
  type ReceivedReport,
  type ViewInputs,
} from './view/inputs.ts';
export type {
  ConnectivityStatus,
  GroupStatus,
  PeerHealthStatus,
  PeerStatus,
  WireGuardPeerStatus,
} from './report/connectivity-status.ts';
export {
  type Forwarding,
  type ForwardingEntry,
  type ForwardingWay,
  LARGEST_FORWARDING_BYTES,
  MOST_FORWARDING_ENTRIES,
  parseForwarding,
} from './report/forwarding.ts';
export { applyMergePatch, createMergePatch, isJsonObject, type JsonObject } from './report/merge-patch.ts';
export { type NodeReport, nodeReport } from './report/node-report.ts';
export type { Parsed } from './report/parse.ts';
export { acceptPush, type HeldReport, parsePush, type Push } from './report/push.ts';
export { statusSchemas } from './schemas.ts';
