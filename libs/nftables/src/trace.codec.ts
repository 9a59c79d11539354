import { type Message, NetlinkDecodeError } from '@unbounded/netlink';
import { readBody } from './observed.codec.ts';
import type { TableFamily } from './table.ts';
import { FAMILY, MESSAGE } from './wire.codec.ts';

/** What the kernel tells of packets whose path through the tables it traces (NFT_MSG_TRACE, linux/netfilter/nf_tables.h). */

/** Where a traced packet met its end. */
export interface TracedDrop {
  readonly family: TableFamily;
  readonly table: string;
  readonly chain: string;
  /** Of the rule, as `nft --handle list chain` shows it; absent: the policy of the chain. */
  readonly handle?: number;
}

/** One step of a packet. */
export interface TraceStep {
  /** The same in all steps of a packet. */
  readonly packet: number;
  readonly at: TracedDrop;
  /** A rule matched; else a chain came to its end. */
  readonly isRule: boolean;
  readonly isDrop: boolean;
}

const TRACE = { table: 1, chain: 2, handle: 3, type: 4, verdict: 5, id: 6, policy: 16 } as const;
const VERDICT_CODE = 1;
/** NFT_TRACETYPE_* */
const [POLICY, RULE] = [1, 3];
/** NF_DROP; a rule that rejects ends with it, too. */
const DROP = 0;

const FAMILIES = new Map(Object.entries(FAMILY).map(([family, number]) => [number, family as TableFamily]));

/** undefined: a message of another kind. @throws NetlinkDecodeError */
export const readTraceStep = ({ type, body }: Message): TraceStep | undefined => {
  if (type !== MESSAGE.trace) return undefined;
  const attributes = readBody(body);
  const family = FAMILIES.get(body[0]!);
  const [table, chain] = [attributes.get(TRACE.table)?.text, attributes.get(TRACE.chain)?.text];
  const packet = attributes.get(TRACE.id)?.be32;
  if (!family || table === undefined || chain === undefined || packet === undefined) return undefined;
  const kind = attributes.get(TRACE.type)?.be32;
  if (kind === POLICY)
    return { packet, at: { family, table, chain }, isRule: false, isDrop: attributes.get(TRACE.policy)?.be32 === DROP };
  const handle = Number(attributes.get(TRACE.handle)?.be64 ?? 0n);
  if (!Number.isSafeInteger(handle)) throw new NetlinkDecodeError(`rule handle ${handle} is no safe integer`);
  const verdict = attributes.get(TRACE.verdict)?.nested().get(VERDICT_CODE)?.be32;
  const isRule = kind === RULE && handle > 0; // 0: the end of a chain, which newer kernels tell like a rule
  return { packet, at: { family, table, chain, handle }, isRule, isDrop: isRule && verdict === DROP };
};
