export {
  type Condition,
  MAX_NODE_ADDRESSES,
  NODE_FEATURES,
  type NodeFeature,
  TUNNEL_PROTOCOLS,
  type TunnelProtocol,
  WIREGUARD_KEY_PATTERN,
} from './fields.ts';
export {
  type CustomResourceDefinition,
  defineKind,
  type KindDefinition,
  type ObjectMeta,
  type ObjectOf,
  type OwnerReference,
  type PrinterColumn,
  type SpecOf,
  type StatusOf,
  toCustomResourceDefinition,
} from './kind.ts';
export { kinds } from './kinds.ts';
export * from './kinds/gateway-pool.ts';
export * from './kinds/mesh.ts';
export * from './kinds/peering.ts';
export * from './kinds/site.ts';
export * from './names.ts';
export * as schema from './schema.ts';
export { sameJson } from './same-json.ts';
