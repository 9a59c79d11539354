import type { ChainSpec, Expression, RuleSpec } from '@unbounded/nftables';
import { ICMPV6, TCP, TUNNEL_PROTOCOLS, UDP } from '../../kernel/protocol-numbers.ts';
import {
  comparesSequence,
  dropError,
  farEndRules,
  hasProtocol,
  quotedField,
  toFarEnd,
  udpChain,
} from './quoted-packet.ts';

/**
 * Errors that quote an IPv6 packet. The kernel steps over any number of extension headers (RFC 8200); the rules know a
 * Fragment header in front of UDP, which large datagrams have, and TCP behind one header of any kind. What else stands behind such headers
 * could be a tunnel of ours, and is not looked for.
 */

const FRAGMENT = 44;
/** Hop-by-Hop Options, Routing, Authentication, Destination Options: of different lengths. */
const EXTENSIONS = [0, 43, 51, 60] as const;

const HEADER_BYTES = 40;
const FRAGMENT_BYTES = 8;

/** The protocol behind the first extension header. */
const hasNext = (value: number): Expression => ({ match: 'raw', field: quotedField(HEADER_BYTES, 1), op: '==', value });
const isFirst: Expression = {
  match: 'raw',
  field: quotedField(HEADER_BYTES + 2, 2),
  op: '==',
  value: 0,
  mask: 0xfff8,
};

export const QUOTED_IP6 = 'quoted_ip6';
const UDP_DIRECT = 'quoted_udp_ip6';
const UDP_IN_FRAGMENT = 'quoted_udp_ip6_fragment';
const IN_FRAGMENT = 'quoted_fragment_ip6';
const BEHIND_EXTENSION = 'quoted_extension_ip6';
const TO_FAR_END = 'quoted_to_far_end_ip6';

const goto = (comment: string, match: Expression, chain: string): RuleSpec => ({
  comment,
  expressions: [match, { do: 'goto', chain }],
});
const onToFarEnd: RuleSpec = { comment: 'others', expressions: [{ do: 'goto', chain: TO_FAR_END }] };

const fragmentRules: readonly RuleSpec[] = [
  comparesSequence(hasNext(TCP)),
  { comment: 'UDP', expressions: [hasNext(UDP), isFirst, { do: 'jump', chain: UDP_IN_FRAGMENT }] },
  ...[...EXTENSIONS, FRAGMENT].map((header) => dropError(`extension header ${header} in a fragment`, hasNext(header))),
  ...[ICMPV6, ...TUNNEL_PROTOCOLS].map((protocol) =>
    dropError(`protocol ${protocol} in a fragment`, hasNext(protocol), toFarEnd('ip6', '==')),
  ),
  onToFarEnd,
];

export const quotedIp6Chains: readonly ChainSpec[] = [
  udpChain(UDP_DIRECT, 'ip6', HEADER_BYTES),
  udpChain(UDP_IN_FRAGMENT, 'ip6', HEADER_BYTES + FRAGMENT_BYTES),
  { name: TO_FAR_END, rules: farEndRules('ip6') },
  { name: IN_FRAGMENT, rules: fragmentRules },
  { name: BEHIND_EXTENSION, rules: [comparesSequence(hasNext(TCP)), dropError('whatever an extension header hides')] },
  {
    name: QUOTED_IP6,
    rules: [
      comparesSequence(hasProtocol('ip6', TCP)),
      { comment: 'UDP', expressions: [hasProtocol('ip6', UDP), { do: 'jump', chain: UDP_DIRECT }] },
      goto('a fragment', hasProtocol('ip6', FRAGMENT), IN_FRAGMENT),
      ...EXTENSIONS.map((header) => goto(`extension header ${header}`, hasProtocol('ip6', header), BEHIND_EXTENSION)),
      onToFarEnd,
    ],
  },
];
