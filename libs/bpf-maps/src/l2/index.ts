export {
  type L2FdbEntry,
  l2FdbEntry,
  l2FdbKey,
  type L2Mac,
  type L2Neighbor,
  l2Neighbor,
  type L2NeighborAddress,
  l2NeighborKey,
} from './bindings.ts';
export { L2_MAPS, l2LayoutFingerprint } from './layout.ts';
export { L2_MAP_LAYOUTS } from './map-layouts.ts';
export {
  type L2Config,
  l2Config,
  type L2Flood,
  l2Flood,
  L2_FLOOD_NODES,
  L2_FLOOD_PORTS,
  type L2Network,
  l2Network,
  l2NetworkKey,
  l2SegmentKey,
  type L2SegmentPair,
} from './networks.ts';
export { type L2Address, l2AddressKey, l2Buckets, type L2Port, l2Port, l2PortKey, l2Present } from './ports.ts';
export { type L2CounterKey, l2CounterKey, type L2Reason, L2_REASONS, l2TotalKey } from './reasons.ts';
export { L2_LAYOUT_VERSION } from './shape.ts';
