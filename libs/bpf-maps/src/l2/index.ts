export { type L2FdbEntry, l2FdbEntry, l2FdbKey, l2Neighbor, l2NeighborKey } from './bindings.ts';
export { L2_MAPS, l2LayoutFingerprint } from './layout.ts';
export {
  l2Config,
  l2Flood,
  L2_FLOOD_NODES,
  L2_FLOOD_PORTS,
  l2Network,
  l2NetworkKey,
  l2SegmentKey,
} from './networks.ts';
export { l2AddressKey, l2Buckets, l2Port, l2PortKey, l2Present } from './ports.ts';
export { l2CounterKey, type L2Reason, L2_REASONS, l2TotalKey } from './reasons.ts';
export { L2_LAYOUT_VERSION } from './shape.ts';
