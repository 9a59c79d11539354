/** Names of entries follow from their keys, as the rules of the kinds have it. */

/** @param mac in lower case with colons */
export const fdbEntryName = (network: string, mac: string): string => `${network}.${mac.replaceAll(':', '-')}`;

/** @param ip in canonical form (RFC 5952) */
export const neighborName = (network: string, ip: string): string => `${network}.ip.${ip.replaceAll(':', 'x')}`;
