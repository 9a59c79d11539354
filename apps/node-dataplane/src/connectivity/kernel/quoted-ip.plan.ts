import type { ChainSpec, Expression, RuleSpec } from '@unbounded/nftables';
import { TCP, UDP } from '../../kernel/protocol-numbers.ts';
import { comparesSequence, farEndRules, hasProtocol, quotedField, udpChain } from './quoted-packet.ts';

/** Errors that quote an IPv4 packet. Its header has 5 to 15 words, with options behind the first five (RFC 791). */

const HEADER_WORDS = Array.from({ length: 11 }, (_, index) => 5 + index);
const WORD_BYTES = 4;

/** The kernel takes the length alone and does not look at the version beside it, so a rule must not either. */
const hasWords = (words: number): Expression => ({
  match: 'raw',
  field: quotedField(0, 1),
  op: '==',
  value: words,
  mask: 0x0f,
});
const udpBehind = (words: number): string => `quoted_udp_ip_${words}`;

export const QUOTED_IP = 'quoted_ip';

/** The kernel reads ports from a later fragment too, where they would stand in a first one; and so do the rules. */
export const quotedIpChains: readonly ChainSpec[] = [
  ...HEADER_WORDS.map((words) => udpChain(udpBehind(words), 'ip', WORD_BYTES * words)),
  {
    name: QUOTED_IP,
    rules: [
      comparesSequence(hasProtocol('ip', TCP)),
      ...HEADER_WORDS.map((words): RuleSpec => ({
        comment: `UDP behind a header of ${WORD_BYTES * words} bytes`,
        expressions: [hasProtocol('ip', UDP), hasWords(words), { do: 'jump', chain: udpBehind(words) }],
      })),
      ...farEndRules('ip'),
    ],
  },
];
