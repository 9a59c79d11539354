export type { TracedDrop } from './trace.codec.ts';
export { findDrift } from './drift.ts';
export { createNftables, type ElementsChange, type Nftables, NftablesError, type TableMonitor } from './nftables.ts';
export { type ObservedCounter, type ObservedTable, packetsOf } from './observed.codec.ts';
export { elementsOf } from './set.codec.ts';
export type * from './table.ts';
