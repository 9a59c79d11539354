import type { Codec } from './codec.ts';

/** How the packets to a next hop are carried (`protocol` field; the program itself goes by ifindex and flags). */
export const PROTOCOLS = { geneve: 1, vxlan: 2, ipip: 3, wireguard: 4, none: 5 } as const;
export type Protocol = keyof typeof PROTOCOLS;

/** Bits of the `flags` field. The upper 16 bits are the index of a next-hop group where `group` is set. */
export const FLAGS = { setKey: 0x01, healthy: 0x02, ipv6Underlay: 0x04, group: 0x08 } as const;
export type _Codec = Codec<unknown>;
