import { baseOf, CONNECTIVITY_CHAINS } from '../../kernel/base-chains.ts';
import { PORTS } from '@unbounded/config/ownership';
import type { ChainSpec, Expression, PayloadField, RawField, RuleSpec, SetSpec } from '@unbounded/nftables';
import type { KernelPlan, TunnelDevice, TunnelKind } from '../kernel-plan.ts';
import { TUNNEL_VNI } from '../devices.ts';
import { COUNTERS } from '../../connectivity/kernel/firewall-parts.ts';
import { familyOf } from '../../connectivity/kernel/nft-family.ts';

/**
 * The netlink data path's check that the inner source of a tunnel packet belongs to the peer that sent it. It stands where
 * packets are whole again but still have both of their headers: at hook input, before the tunnel device takes the outer
 * one off. Only what a device of ours would take is looked at.
 */

const UDP = 17;
const IPIP = 4; // IP protocol number

type Family = 'ip' | 'ip6';
const FAMILIES = ['ip', 'ip6'] as const;
const SET_TYPE = { ip: 'ipv4', ip6: 'ipv6' } as const;
const ETHERTYPE = { ip: 0x0800, ip6: 0x86dd } as const;
const SOURCE = { ip: { offsetBytes: 12, lengthBytes: 4 }, ip6: { offsetBytes: 8, lengthBytes: 16 } } as const;

/** Bytes from the transport header: UDP, the header of VXLAN (RFC 7348) or GENEVE without options (RFC 8926), Ethernet. */
const UDP_BYTES = 8;
const FRAME_AT = UDP_BYTES + 8;
const ETHERTYPE_AT = FRAME_AT + 12;
const PACKET_AT = FRAME_AT + 14;

const raw = (offsetBytes: number, lengthBytes: number): RawField => ({ base: 'transport', offsetBytes, lengthBytes });
const saddr = (family: Family): PayloadField => `${family}.saddr`;
const pairSet = (outer: Family, inner: Family): string => `senders_${outer}_${inner}`;

const pairSets = ({ senders = [] }: KernelPlan): SetSpec[] =>
  FAMILIES.flatMap((outer) =>
    FAMILIES.map((inner): SetSpec => {
      const elements = senders
        .filter(({ remoteIp }) => familyOf(remoteIp) === outer)
        .flatMap(({ remoteIp, sources }) =>
          sources.filter((block) => familyOf(block) === inner).map((block) => `${remoteIp} . ${block}`),
        );
      return { name: pairSet(outer, inner), type: `${SET_TYPE[outer]} . ${SET_TYPE[inner]}`, elements };
    }),
  );

/** A device that takes tunnel packets: of its far end or, without one, of everybody. */
export type Tunnel = Pick<TunnelDevice, 'kind' | 'remoteIp'>;

/** Far ends of the devices: other tunnels of the same kind may be somebody else's. */
const farEndSet = (kind: Kind, family: Family): string => `${kind}_peers_${family}`;

const farEndSets = (kind: Kind, tunnels: readonly Tunnel[]): SetSpec[] =>
  FAMILIES.map((family) => ({
    name: farEndSet(kind, family),
    type: SET_TYPE[family],
    elements: tunnels.flatMap(({ remoteIp }) => (remoteIp && familyOf(remoteIp) === family ? [remoteIp] : [])),
  }));

const ownRule = (kind: Kind, [outer, inner]: readonly [Family, Family], packetAt: number): RuleSpec => {
  const { offsetBytes, lengthBytes } = SOURCE[inner];
  const isFramed = packetAt === PACKET_AT;
  return {
    comment: `${kind}: ${inner} in ${outer}, of its sender`,
    expressions: [
      ...(isFramed
        ? [
            {
              match: 'raw',
              field: raw(ETHERTYPE_AT, 2),
              op: '==',
              value: ETHERTYPE[inner],
            } as const satisfies Expression,
          ]
        : []),
      {
        match: 'pair',
        fields: [saddr(outer), raw(packetAt + offsetBytes, lengthBytes)],
        op: '==',
        set: pairSet(outer, inner),
      },
      { do: 'return' },
    ],
  };
};

const dropRule = (comment: string, ...matches: readonly Expression[]): RuleSpec => ({
  comment,
  expressions: [...matches, { do: 'counter', name: COUNTERS.forgedInnerSource }, { do: 'drop' }],
});

const PAIRS = FAMILIES.flatMap((outer) => FAMILIES.map((inner) => [outer, inner] as const));

const framedChain = (kind: 'vxlan' | 'geneve', ...first: readonly RuleSpec[]): ChainSpec => ({
  name: kind,
  rules: [...first, ...PAIRS.map((pair) => ownRule(kind, pair, PACKET_AT)), dropRule(`${kind}: not of its sender`)],
});

const isUdpTo = (port: number): Expression[] => [
  { match: 'meta', key: 'l4proto', op: '==', value: UDP },
  { match: 'payload', field: 'th.dport', op: '==', value: port },
];

const fromFarEnd = (kind: Kind, family: Family): Expression => ({
  match: 'set',
  field: saddr(family),
  op: '==',
  set: farEndSet(kind, family),
});

type Kind = 'vxlan' | 'geneve' | 'ipip';

/** What the packets of a kind are known by. */
const SIGNS: Readonly<Record<Kind, readonly Expression[]>> = {
  vxlan: isUdpTo(PORTS.vxlan),
  geneve: isUdpTo(PORTS.geneve),
  ipip: [{ match: 'meta', key: 'l4proto', op: '==', value: IPIP }],
};
const OUR_GENEVE: Expression = { match: 'raw', field: raw(UDP_BYTES + 4, 3), op: '==', value: TUNNEL_VNI };

const CHAINS: Readonly<Record<Kind, ChainSpec>> = {
  vxlan: framedChain('vxlan'),
  // The first byte is the version, 0, and the length of options, which would move the source from where it is looked at.
  geneve: framedChain(
    'geneve',
    dropRule('geneve: options, which we send none of', { match: 'raw', field: raw(UDP_BYTES, 1), op: '!=', value: 0 }),
  ),
  ipip: { name: 'ipip', rules: [ownRule('ipip', ['ip', 'ip'], 0), dropRule('ipip: not of its sender')] },
};

/** Which packets our devices of a kind would take. */
const choosing = (kind: Kind, takesAll: boolean): Expression[][] => {
  if (takesAll) return [[...SIGNS[kind]]];
  const own = kind === 'geneve' ? [...SIGNS.geneve, OUR_GENEVE] : SIGNS[kind];
  return FAMILIES.map((family) => [...own, fromFarEnd(kind, family)]);
};

const KINDS: Readonly<Record<TunnelKind, Kind>> = { VXLAN: 'vxlan', GENEVE: 'geneve', IPIP: 'ipip' };

interface Checks {
  readonly sets: readonly SetSpec[];
  readonly chains: readonly ChainSpec[];
}

const checksOf = (name: TunnelKind, tunnels: readonly Tunnel[]): Checks & { readonly rules: readonly RuleSpec[] } => {
  const kind = KINDS[name];
  const own = tunnels.filter((tunnel) => tunnel.kind === name);
  if (own.length === 0) return { sets: [], chains: [], rules: [] };
  const takesAll = own.some(({ remoteIp }) => remoteIp === undefined);
  const rules = choosing(kind, takesAll).map((matches): RuleSpec => ({
    comment: `${kind}: for a device of ours`,
    expressions: [...matches, { do: 'goto', chain: CHAINS[kind].name }],
  }));
  return { sets: takesAll ? [] : farEndSets(kind, own), chains: [CHAINS[kind]], rules };
};

/**
 * Sets and chains; none under the eBPF data path, whose programs check.
 * @param tunnels the devices that are there and ours, also those that the plan no longer wants: they take packets until
 * they are gone. Where one could not be made its port is another's.
 */
export const planSenders = (plan: KernelPlan, tunnels: readonly Tunnel[]): Checks => {
  const all = (['VXLAN', 'GENEVE', 'IPIP'] as const).map((kind) => checksOf(kind, tunnels));
  if (plan.senders === undefined || tunnels.length === 0) return { sets: [], chains: [] };
  return {
    sets: [...pairSets(plan), ...all.flatMap(({ sets }) => sets)],
    chains: [
      ...all.flatMap(({ chains }) => chains),
      {
        name: 'tunnels',
        base: baseOf(CONNECTIVITY_CHAINS.tunnels),
        rules: all.flatMap(({ rules }) => rules),
      },
    ],
  };
};
