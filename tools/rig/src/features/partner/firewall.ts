import { familyOf, nftFamilyOf } from '../../layout/addresses.ts';

/** The partner's firewall: who is on its list gets in, and whoever came is written down. */

const TABLE = 'partner';
const VERDICTS = ['admitted', 'refused'] as const;

export interface Seen {
  readonly source: string;
  /** As nftables names it: tcp, udp, icmp, ipv6-icmp. */
  readonly protocol: string;
  readonly packets: number;
  readonly verdict: (typeof VERDICTS)[number];
}

const FAMILIES = [
  { name: 'ip', number: 4, type: 'ipv4_addr' },
  { name: 'ip6', number: 6, type: 'ipv6_addr' },
] as const;
type FamilyNames = (typeof FAMILIES)[number];

const SEEN_AT_MOST = 65_535;

const setsOf = ({ name, number, type }: FamilyNames, admitted: readonly string[]): string => {
  const own = admitted.filter((block) => nftFamilyOf(block) === name);
  const elements = own.length > 0 ? ` elements = { ${own.join(', ')} };` : '';
  const seen = VERDICTS.map(
    (verdict) =>
      `  set ${verdict}${number} { typeof ${name} saddr . meta l4proto; flags dynamic; size ${SEEN_AT_MOST}; counter; }\n`,
  );
  return `  set allowed${number} { type ${type}; flags interval;${elements} }\n${seen.join('')}`;
};

const rulesOf = ({ name, number }: FamilyNames): string => {
  const note = (verdict: string): string => `add @${verdict}${number} { ${name} saddr . meta l4proto }`;
  return `    ${name} saddr @allowed${number} ${note('admitted')} accept
    meta nfproto ipv${number} ${note('refused')} drop
`;
};

/**
 * Neighbor discovery and what is said to all are the segment's own affair. ICMP errors about answers of the partner come from
 * routers on the way, as elsewhere: they belong to a connection that was admitted.
 */
export const firewall = (admitted: readonly string[]): string => `table inet ${TABLE}
delete table inet ${TABLE}
table inet ${TABLE} {
${FAMILIES.map((family) => setsOf(family, admitted)).join('')}  chain input { type filter hook input priority filter; policy drop
    iifname lo accept
    icmpv6 type { nd-router-solicit, nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert } accept
    meta pkttype { broadcast, multicast } drop
    ct state related accept
${FAMILIES.map(rulesOf).join('')}  }
}
`;

export const LIST_SEEN = ['nft', '-j', 'list', 'table', 'inet', TABLE] as const;

interface Listed {
  readonly nftables: readonly {
    readonly set?: {
      readonly name: string;
      readonly elem?: readonly {
        readonly elem?: {
          readonly val: { readonly concat: readonly [string, string] };
          readonly counter: { readonly packets: number };
        };
      }[];
    };
  }[];
}

/** What {@link LIST_SEEN} printed, in the order of sources. */
export const seenIn = (printed: string): Seen[] =>
  (JSON.parse(printed) as Listed).nftables
    .flatMap(({ set }) => {
      const verdict = VERDICTS.find((known) => set?.name.startsWith(known));
      if (!set || !verdict) return [];
      return (set.elem ?? []).flatMap(({ elem }): Seen[] => {
        if (!elem) return [];
        const [source, protocol] = elem.val.concat;
        return [{ source, protocol, packets: elem.counter.packets, verdict }];
      });
    })
    .sort(
      (a, b) =>
        a.verdict.localeCompare(b.verdict) ||
        familyOf(a.source) - familyOf(b.source) ||
        a.source.localeCompare(b.source) ||
        a.protocol.localeCompare(b.protocol),
    );

/** Sources of which the partner has more packets than before. */
export const newSince = (before: readonly Seen[], after: readonly Seen[]): Seen[] =>
  after.filter(({ source, protocol, packets, verdict }) => {
    const former = before.find((one) => one.source === source && one.protocol === protocol && one.verdict === verdict);
    return packets > (former?.packets ?? 0);
  });

export const seenAsTable = (seen: readonly Seen[]): string =>
  [
    ['SOURCE', 'PROTOCOL', 'PACKETS', 'VERDICT'],
    ...seen.map(({ source, protocol, packets, verdict }) => [source, protocol, String(packets), verdict]),
  ]
    .map(([source, protocol, packets, verdict]) =>
      [source!.padEnd(24), protocol!.padEnd(12), packets!.padStart(9), ` ${verdict}`].join(' '),
    )
    .join('\n');
