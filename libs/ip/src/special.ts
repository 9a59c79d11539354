import type { Address, Family } from './address.ts';
import { containsAddress, overlaps, parsePrefix, type Prefix } from './prefix.ts';

/** Why an address or block cannot be a unicast destination in a routed network (IANA special-purpose registries). */
export type SpecialRange = 'unspecified' | 'loopback' | 'link-local' | 'multicast' | 'reserved' | 'IPv4-mapped';

const RANGES: readonly (readonly [SpecialRange, Prefix])[] = (
  [
    ['unspecified', '0.0.0.0/8'], // "this network", RFC 791 3.2
    ['loopback', '127.0.0.0/8'], // RFC 1122 3.2.1.3
    ['link-local', '169.254.0.0/16'], // RFC 3927
    ['multicast', '224.0.0.0/4'], // RFC 5771
    ['reserved', '240.0.0.0/4'], // RFC 1112 4, with the limited broadcast address
    ['unspecified', '::/128'], // RFC 4291 2.5.2
    ['loopback', '::1/128'], // RFC 4291 2.5.3
    ['IPv4-mapped', '::ffff:0:0/96'], // RFC 4291 2.5.5.2
    ['link-local', 'fe80::/10'], // RFC 4291 2.5.6
    ['multicast', 'ff00::/8'], // RFC 4291 2.7
  ] as const
).map(([name, text]) => [name, parsePrefix(text)]);

/** All of them, as blocks. */
export const SPECIAL_BLOCKS: readonly Prefix[] = RANGES.map(([, range]) => range);

/** The range that makes the address unusable as another node's; undefined for ordinary unicast, private too. */
export const specialRangeOf = (address: Address): SpecialRange | undefined =>
  RANGES.find(([, range]) => containsAddress(range, address))?.[0];

/** The first range that shares an address with the block; undefined when all of it is ordinary unicast. */
export const specialRangeIn = (prefix: Prefix): SpecialRange | undefined =>
  RANGES.find(([, range]) => overlaps(range, prefix))?.[0];

/**
 * The shortest prefix lengths of a block of nodes, pods or destinations. The largest private IPv4 block is a /8 (RFC 1918);
 * of IPv6 an operator holds a /16 at most (regional registries themselves get a /12), a unique local prefix is a /48 (RFC 4193).
 */
export const SHORTEST_BLOCK: Readonly<Record<Family, number>> = { 4: 8, 6: 16 };
