export { findDrift } from './drift.ts';
export {
  createNftables,
  type Nftables,
  NftablesError,
  type TableMonitor,
  type TableMonitorHandlers,
} from './nftables.ts';
export {
  type ObservedChain,
  type ObservedCounter,
  type ObservedRule,
  type ObservedSet,
  type ObservedTable,
  packetsOf,
} from './observed.codec.ts';
export { type Element, elementsOf } from './set.codec.ts';
export type * from './table.ts';
