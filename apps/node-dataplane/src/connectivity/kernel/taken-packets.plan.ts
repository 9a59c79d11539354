import { PORTS } from '@unbounded/config/ownership';
import type { Expression, RuleSpec, SetSpec } from '@unbounded/nftables';
import { TUNNEL_VNI } from '../../data-path/devices.ts';
import type { TunnelDevice, TunnelKind } from '../../data-path/kernel-plan.ts';
import { addressSets, isIn } from '../../kernel/address-sets.ts';
import { FAMILIES } from '../../kernel/nft-family.ts';
import { IPIP, UDP } from '../../kernel/protocol-numbers.ts';

/**
 * Which packets at the node itself our unencrypted tunnels would take. Others of the same ports and protocols belong to tunnels of
 * somebody else, and no rule of ours looks at them.
 */

/** A device that takes tunnel packets: of its far end or, without one, of everybody. */
export type Tunnel = Pick<TunnelDevice, 'kind' | 'remoteIp'>;

export type PacketKind = 'vxlan' | 'geneve' | 'ipip';

export interface TakenPackets {
  readonly kind: PacketKind;
  /** Far ends of the devices; none: they take packets of everybody. */
  readonly sets: readonly SetSpec[];
  /** Each is what a packet is known by. */
  readonly matches: readonly (readonly Expression[])[];
}

const NFPROTO_IPV4 = 2;
/** Bytes from the transport header: that of UDP, and into the header of GENEVE (RFC 8926). */
const VNI_AT = 8 + 4;

const isUdpTo = (port: number): Expression[] => [
  { match: 'meta', key: 'l4proto', op: '==', value: UDP },
  { match: 'payload', field: 'th.dport', op: '==', value: port },
];
const ourVni: Expression = {
  match: 'raw',
  field: { base: 'transport', offsetBytes: VNI_AT, lengthBytes: 3 },
  op: '==',
  value: TUNNEL_VNI,
};

/** What the packets of a kind are known by. IPIP's devices are those of IPv4 in IPv4. */
const SIGNS: Readonly<Record<PacketKind, readonly Expression[]>> = {
  vxlan: isUdpTo(PORTS.vxlan),
  geneve: isUdpTo(PORTS.geneve),
  ipip: [
    { match: 'meta', key: 'nfproto', op: '==', value: NFPROTO_IPV4 },
    { match: 'meta', key: 'l4proto', op: '==', value: IPIP },
  ],
};

const KINDS: Readonly<Record<TunnelKind, PacketKind>> = { VXLAN: 'vxlan', GENEVE: 'geneve', IPIP: 'ipip' };

const farEndSets = (kind: PacketKind): string => `${kind}_peers`;

const ofFarEnds = (kind: PacketKind, tunnels: readonly Tunnel[]): TakenPackets => ({
  kind,
  sets: addressSets(
    farEndSets(kind),
    tunnels.flatMap(({ remoteIp }) => remoteIp ?? []),
  ),
  matches: FAMILIES.filter((family) => family === 'ip' || kind !== 'ipip').map((family) => [
    ...SIGNS[kind],
    ...(kind === 'geneve' ? [ourVni] : []),
    isIn(family, 'saddr', farEndSets(kind)),
  ]),
});

/**
 * @param tunnels the devices that are there and ours, also those that the plan no longer wants: they take packets until they are
 * gone. Where one could not be made its port is another's.
 */
export const takenPackets = (tunnels: readonly Tunnel[]): TakenPackets[] =>
  Object.entries(KINDS).flatMap(([name, kind]): TakenPackets[] => {
    const own = tunnels.filter((tunnel) => tunnel.kind === name);
    if (own.length === 0) return [];
    const takesAll = own.some(({ remoteIp }) => remoteIp === undefined);
    return takesAll ? [{ kind, sets: [], matches: [SIGNS[kind]] }] : [ofFarEnds(kind, own)];
  });

/** Sends them on to a chain. */
export const rulesFor = (taken: readonly TakenPackets[], chainOf: (packets: TakenPackets) => string): RuleSpec[] =>
  taken.flatMap((packets) =>
    packets.matches.map((matches) => ({
      comment: `${packets.kind}: for a device of ours`,
      expressions: [...matches, { do: 'goto', chain: chainOf(packets) }],
    })),
  );
