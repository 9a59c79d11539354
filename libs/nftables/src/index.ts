export { createNftables, type Nftables, NftablesError } from './nftables.ts';
export type { ObservedChain, ObservedRule, ObservedSet, ObservedTable } from './observed.codec.ts';
export type * from './table.ts';
