export {
  type Address,
  addressBits,
  addressFromBytes,
  AddressSyntaxError,
  addressToBytes,
  type Family,
  formatAddress,
  parseAddress,
  tryParseAddress,
} from './address.ts';
export { AddressSet } from './address-set.ts';
export { linkLocalOf } from './link-local.ts';
export { macBytes, macText } from './mac.ts';
export {
  comparePrefixes,
  containsAddress,
  containsPrefix,
  firstAddress,
  formatPrefix,
  hostPrefix,
  lastAddress,
  overlaps,
  parsePrefix,
  type Prefix,
  prefixOf,
  tryParsePrefix,
  withoutCovered,
} from './prefix.ts';
export { SHORTEST_BLOCK, SPECIAL_BLOCKS, specialRangeIn, specialRangeOf } from './special.ts';
