/** What nft calls the family of an address or prefix. */
export const familyOf = (text: string): 'ip' | 'ip6' => (text.includes(':') ? 'ip6' : 'ip');
