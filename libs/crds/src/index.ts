export * from './agent-annotations.ts';
export {
  type Condition,
  DNS_LABEL_PATTERN,
  MAX_NODE_ADDRESSES,
  NODE_FEATURES,
  TUNNEL_PROTOCOLS,
  type TunnelProtocol,
  WIREGUARD_KEY_PATTERN,
} from './fields.ts';
export { type KindDefinition, type ObjectMeta, type ObjectOf, toCustomResourceDefinition } from './kind.ts';
export { egressKinds, kinds, type KindTable, type ObjectsOf, topologyKinds } from './kinds.ts';
export type { LabelSelector } from './egress-fields.ts';
export * from './kinds/egress-ip-pool.ts';
export * from './kinds/egress-node-slice.ts';
export * from './kinds/gateway-pool.ts';
export * from './kinds/l2-entries.ts';
export * from './kinds/mesh.ts';
export * from './kinds/network-endpoint.ts';
export * from './kinds/network.ts';
export * from './kinds/peering.ts';
export * from './kinds/site.ts';
export * from './kinds/static-egress-ip.ts';
export * from './kinds/tailnet-device.ts';
export * from './names.ts';
export * as schema from './schema.ts';
export { sameJson } from './same-json.ts';
export { type Fill, placeItems, placeKeys } from './slice-placement.ts';
export { TAILNET_DEFAULTS, TAILNET_TAG_PATTERN, type TailnetSettings } from './tailnet-fields.ts';
