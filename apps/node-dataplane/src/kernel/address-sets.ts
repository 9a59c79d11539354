import type { Expression, SetSpec } from '@unbounded/nftables';
import { ADDRESS_TYPE, FAMILIES, type Family, familyOf } from './nft-family.ts';

/** A set of nftables has one family, so what is named once stands in two sets. */

export const setName = (name: string, family: Family): string => `${name}_${family}`;

export const ofFamily = (family: Family, prefixes: readonly string[]): string[] =>
  prefixes.filter((prefix) => familyOf(prefix) === family);

export const addressSet = (name: string, family: Family, prefixes: readonly string[]): SetSpec => ({
  name: setName(name, family),
  type: ADDRESS_TYPE[family],
  elements: ofFamily(family, prefixes),
});

/** Addresses and prefixes of both families. */
export const addressSets = (name: string, prefixes: readonly string[]): SetSpec[] =>
  FAMILIES.map((family) => addressSet(name, family, prefixes));

/** Addresses alone, which come and go. */
export const singleSet = (name: string, family: Family, addresses: readonly string[]): SetSpec => ({
  ...addressSet(name, family, addresses),
  single: true,
});

/** Of both families. */
export const singleSets = (name: string, addresses: readonly string[]): SetSpec[] =>
  FAMILIES.map((family) => singleSet(name, family, addresses));

/** Whether an address of the packet is in the set of its family. */
export const isIn = (family: Family, address: 'saddr' | 'daddr', name: string, op: '==' | '!=' = '=='): Expression => ({
  match: 'set',
  field: `${family}.${address}`,
  op,
  set: setName(name, family),
});
