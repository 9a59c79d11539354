import { baseOf, CONNECTIVITY_CHAINS } from '../../kernel/base-chains.ts';
import type { ChainSpec, Expression, PayloadField, RawField, RuleSpec, SetSpec } from '@unbounded/nftables';
import type { KernelPlan } from '../kernel-plan.ts';
import { COUNTERS, type FirewallPart } from '../../connectivity/kernel/firewall-parts.ts';
import { ADDRESS_TYPE, FAMILIES, type Family, familyOf } from '../../kernel/nft-family.ts';
import { type PacketKind, rulesFor, type TakenPackets } from '../../connectivity/kernel/taken-packets.plan.ts';

/**
 * The netlink data path's check that the inner source of a tunnel packet belongs to the peer that sent it. It stands where
 * packets are whole again but still have both of their headers: at hook input, before the tunnel device takes the outer
 * one off. Only what a device of ours would take is looked at.
 */

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
      return { name: pairSet(outer, inner), type: `${ADDRESS_TYPE[outer]} . ${ADDRESS_TYPE[inner]}`, elements };
    }),
  );

const ownRule = (kind: PacketKind, [outer, inner]: readonly [Family, Family], packetAt: number): RuleSpec => {
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

const CHAINS: Readonly<Record<PacketKind, ChainSpec>> = {
  vxlan: framedChain('vxlan'),
  // The first byte is the version, 0, and the length of options, which would move the source from where it is looked at.
  geneve: framedChain(
    'geneve',
    dropRule('geneve: options, which we send none of', { match: 'raw', field: raw(UDP_BYTES, 1), op: '!=', value: 0 }),
  ),
  ipip: { name: 'ipip', rules: [ownRule('ipip', ['ip', 'ip'], 0), dropRule('ipip: not of its sender')] },
};

/**
 * Chains; none under the eBPF data path, whose programs check.
 * @param taken what our devices take
 */
export const planSenders = (plan: KernelPlan, taken: readonly TakenPackets[]): FirewallPart => {
  if (plan.senders === undefined || taken.length === 0) return { sets: [], chains: [] };
  return {
    sets: pairSets(plan),
    chains: [
      ...taken.map(({ kind }) => CHAINS[kind]),
      {
        name: 'tunnels',
        base: baseOf(CONNECTIVITY_CHAINS.tunnels),
        rules: rulesFor(taken, ({ kind }) => CHAINS[kind].name),
      },
    ],
  };
};
