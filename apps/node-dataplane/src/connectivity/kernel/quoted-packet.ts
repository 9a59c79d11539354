import type { ChainSpec, Expression, RawField, RuleSpec } from '@unbounded/nftables';
import { setName } from '../../kernel/address-sets.ts';
import { COUNTERS } from './firewall-parts.ts';
import type { Family } from '../../kernel/nft-family.ts';
import { ICMP, ICMPV6, TUNNEL_PROTOCOLS } from '../../kernel/protocol-numbers.ts';

/**
 * The packet that an ICMP error quotes, as rules look at it: behind the error's header of 8 bytes (RFC 792, RFC 4443). A packet
 * that ends before a field matches no rule about it; the kernel takes no error that quotes less than 8 bytes of transport.
 */

const ERROR_BYTES = 8;

export const errorField = (offsetBytes: number, lengthBytes: number): RawField => ({
  base: 'transport',
  offsetBytes,
  lengthBytes,
});
export const quotedField = (offsetBytes: number, lengthBytes: number): RawField =>
  errorField(ERROR_BYTES + offsetBytes, lengthBytes);

export const hasType = (type: number): Expression => ({ match: 'raw', field: errorField(0, 1), op: '==', value: type });

const PROTOCOL = { ip: quotedField(9, 1), ip6: quotedField(6, 1) } as const;
export const hasProtocol = (family: Family, value: number): Expression => ({
  match: 'raw',
  field: PROTOCOL[family],
  op: '==',
  value,
});

/** Sets of quoted-packet rules, and what is in them. */
export const SETS = {
  /** Of this node: whatever is sent from these ports is WireGuard's, wherever it goes, as peers may roam. */
  ownWireGuardPorts: 'own_wireguard_ports',
  tunnelPorts: 'far_end_ports',
  farEnds: 'far_ends',
} as const;

const DESTINATION = { ip: quotedField(16, 4), ip6: quotedField(24, 16) } as const;
export const toFarEnd = (family: Family, op: '==' | '!='): Expression => ({
  match: 'set',
  field: DESTINATION[family],
  op,
  set: setName(SETS.farEnds, family),
});

export const dropError = (comment: string, ...matches: readonly Expression[]): RuleSpec => ({
  comment,
  expressions: [...matches, { do: 'counter', name: COUNTERS.tunnelIcmpError }, { do: 'drop' }],
});

export const comparesSequence = (match: Expression): RuleSpec => ({
  comment: 'TCP: the kernel compares sequence numbers',
  expressions: [match, { do: 'return' }],
});

/** For quoted UDP whose header stands at this offset of the quoted packet. */
export const udpChain = (name: string, family: Family, offsetBytes: number): ChainSpec => {
  const port = (at: number, set: string): Expression => ({
    match: 'set',
    field: quotedField(offsetBytes + at, 2),
    op: '==',
    set,
  });
  return {
    name,
    rules: [
      dropError('from WireGuard of this node', port(0, SETS.ownWireGuardPorts)),
      { comment: 'to no far end', expressions: [toFarEnd(family, '!='), { do: 'return' }] },
      dropError('from a port of tunnels', port(0, SETS.tunnelPorts)),
      dropError('to a port of tunnels', port(2, SETS.tunnelPorts)),
    ],
  };
};

/** Types that change a path whatever ICMP message is quoted: of that the kernel compares nothing with what was sent. */
const LEARNED_FROM_ICMP: Readonly<
  Record<Family, { readonly protocol: number; readonly types: readonly Expression[] }>
> = {
  ip: {
    protocol: ICMP,
    // Unreachable: fragmentation needed; redirect.
    types: [{ match: 'raw', field: errorField(0, 2), op: '==', value: 0x03_04 }, hasType(5)],
  },
  ip6: { protocol: ICMPV6, types: [hasType(2)] },
};

/** What follows the look at ports. */
export const farEndRules = (family: Family): RuleSpec[] => {
  const { protocol: icmp, types } = LEARNED_FROM_ICMP[family];
  return [
    { comment: 'to no far end', expressions: [toFarEnd(family, '!='), { do: 'return' }] },
    ...TUNNEL_PROTOCOLS.map((protocol) => dropError(`IP protocol ${protocol}`, hasProtocol(family, protocol))),
    ...types.map((type) => dropError('nothing of a quoted ICMP message is compared', type, hasProtocol(family, icmp))),
    dropError('of no connection of this node', { match: 'ct-state', states: ['new', 'invalid', 'untracked'] }),
  ];
};
