/** IP protocol numbers (IANA). */

export const ICMP = 1;
export const TCP = 6;
export const UDP = 17;
export const ICMPV6 = 58;

/** IPv4 and IPv6 in IP (RFC 2003, 4213), and GRE. */
export const IPIP = 4;
export const TUNNEL_PROTOCOLS = [IPIP, 41, 47] as const;
