import { type Forwarding, LARGEST_FORWARDING_BYTES, parseForwarding } from '@unbounded/status';
import { FORWARDING_LIMITS } from '../forwarding/forwarding.limits.ts';
import type { HeldForwarding } from '../intake.port.ts';
import { packJson, unpackJson } from './bounded-gzip.ts';
import type { RedisKeys } from './keys.ts';
import type { RedisLink } from './redis-link.ts';
import type { SkipReason } from './redis-metrics.ts';
import { listOf, textOf } from './report-store.ts';
import { PUT_FORWARDING, WANT_FORWARDING, WANTED_NODES } from './scripts.ts';

/** Who is wanted and what was answered, in Redis, which forgets both by itself. Nothing of it is trusted. */
export interface ForwardingStore {
  /** As `ForwardingExchange.want`. @throws RedisAway, Error */
  want(node: string): Promise<'tooMany' | { readonly answer?: HeldForwarding }>;
  /** Nodes that somebody wants. @throws RedisAway, Error */
  wanted(): Promise<ReadonlySet<string>>;
  /** Nothing where nobody wants it any more. @throws RedisAway, Error */
  put(node: string, forwarding: Forwarding): Promise<void>;
}

const MOST_PACKED_BYTES = LARGEST_FORWARDING_BYTES;
/** Numbers may be written longer than they came. */
const MOST_BYTES = 2 * LARGEST_FORWARDING_BYTES;
const HEAD = /^v1\n(\d{1,16})\n/;
const LONGEST_HEAD_BYTES = 24;

/** Undefined: it is none of ours, or damaged. */
const answerOf = async (value: Buffer, nowMs: number): Promise<HeldForwarding | undefined> => {
  const head = HEAD.exec(value.toString('latin1', 0, LONGEST_HEAD_BYTES));
  if (!head) return undefined;
  const read = parseForwarding(await unpackJson(value.subarray(head[0].length), MOST_BYTES));
  return read.ok
    ? { json: Buffer.from(JSON.stringify(read.value)), ageMs: Math.max(0, nowMs - Number(head[1])) }
    : undefined;
};

export const createForwardingStore = (
  link: RedisLink,
  keys: RedisKeys,
  skipped: (reason: SkipReason) => void,
  limits: { readonly [K in keyof typeof FORWARDING_LIMITS]: number } = FORWARDING_LIMITS,
): ForwardingStore => ({
  async want(node) {
    const args = [node, `${limits.wantedMs}`, `${limits.mostNodes}`, `${MOST_PACKED_BYTES}`];
    const reply = listOf(await link.run('request', WANT_FORWARDING, [keys.wanted, keys.forwarding(node)], args));
    const [word, now, value] = reply;
    if (textOf(word) === 'full') return 'tooMany';
    if (!Buffer.isBuffer(value)) return {};
    const answer = await answerOf(value, Number(textOf(now)));
    if (!answer) skipped('forwarding');
    return answer ? { answer } : {};
  },
  async wanted() {
    const reply = await link.run('request', WANTED_NODES, [keys.wanted], [`${limits.mostNodes}`]);
    return new Set(listOf(reply).map(textOf));
  },
  async put(node, forwarding) {
    const args = [node, await packJson(forwarding), `${limits.heldMs}`];
    await link.run('request', PUT_FORWARDING, [keys.wanted, keys.forwarding(node)], args);
  },
});
