/** The lab's addresses, by family: every network is decided here. Host numbers read the same in both families. */

export type Family = 4 | 6;

/** Which families pods, Services and the underlay have; the first is the primary one. */
export const FAMILIES = { ipv4: [4], dual: [4, 6], ipv6: [6] } as const satisfies Record<string, readonly Family[]>;
export type FamilyOption = keyof typeof FAMILIES;

interface Plan {
  readonly lan: (site: number) => string;
  readonly lanHost: (site: number, host: number) => string;
  readonly wan: string;
  readonly wanHost: (host: number) => string;
  readonly podPool: (site: number) => string;
  /** The node's block, of those of a site the n-th from 0. */
  readonly podBlock: (site: number, n: number) => string;
  /** What every pod pool lies in. */
  readonly pods: string;
  readonly services: { readonly cidr: string; readonly apiServer: string; readonly dns: string };
  readonly lanLength: number;
  readonly wanLength: number;
  /** What all LANs lie in. */
  readonly lans: string;
  /** Length of a node's pod block. */
  readonly nodeBlock: number;
}

/** 203.0.113.0/24 and 2001:db8::/32 are for documentation (RFC 5737, 3849): nobody's addresses stand in for the WAN. */
export const PLANS: Readonly<Record<Family, Plan>> = {
  4: {
    lan: (site) => `10.${site}.0.0/24`,
    lanHost: (site, host) => `10.${site}.0.${host}`,
    wan: '203.0.113.0/24',
    wanHost: (host) => `203.0.113.${host}`,
    podPool: (site) => `100.${64 + site}.0.0/16`,
    podBlock: (site, n) => `100.${64 + site}.${n}.0/24`,
    pods: '100.64.0.0/10',
    services: { cidr: '10.96.0.0/16', apiServer: '10.96.0.1', dns: '10.96.0.10' },
    lanLength: 24,
    wanLength: 24,
    lans: '10.0.0.0/12',
    nodeBlock: 24,
  },
  6: {
    lan: (site) => `fd10:${site}::/64`,
    lanHost: (site, host) => `fd10:${site}::${host}`,
    wan: '2001:db8:203::/64',
    wanHost: (host) => `2001:db8:203::${host}`,
    podPool: (site) => `fd64:${site}::/56`,
    podBlock: (site, n) => `fd64:${site}:0:${n.toString(16)}::/64`,
    pods: 'fd64::/16',
    services: { cidr: 'fd96::/112', apiServer: 'fd96::1', dns: 'fd96::a' },
    lanLength: 64,
    wanLength: 64,
    lans: 'fd10::/16',
    nodeBlock: 64,
  },
};

export const familyOf = (address: string): Family => (address.includes(':') ? 6 : 4);

/** How nftables names the family of an address. */
export const nftFamilyOf = (address: string): 'ip' | 'ip6' => (familyOf(address) === 6 ? 'ip6' : 'ip');

/** An address as it stands before a port. */
export const hostOf = (address: string): string => (address.includes(':') ? `[${address}]` : address);
