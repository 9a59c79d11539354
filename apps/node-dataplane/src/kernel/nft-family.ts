/** What nft calls the families of addresses and prefixes. */
export type Family = 'ip' | 'ip6';
export const FAMILIES: readonly Family[] = ['ip', 'ip6'];

export const familyOf = (text: string): Family => (text.includes(':') ? 'ip6' : 'ip');

/** Type of a set of them. */
export const ADDRESS_TYPE = { ip: 'ipv4', ip6: 'ipv6' } as const;
