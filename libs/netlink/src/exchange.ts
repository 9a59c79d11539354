import { readAttributes } from './attribute.codec.ts';
import { CONTROL, FLAG, type Message, type Request } from './message.codec.ts';
import { NetlinkError } from './netlink-error.ts';

const HEADER_BYTES = 16;
const EXTACK_TEXT = 1; // NLMSGERR_ATTR_MSG
const ENOBUFS = 105;

/** Messages that were sent together and are settled together. */
export class Exchange {
  readonly requests: readonly Request[];
  /** Sequence number of the first; the others follow it. */
  readonly firstSeq: number;
  /** Ends with the first refusal: a batch of nfnetlink answers nothing behind it. */
  readonly untilError: boolean;
  readonly errors: (NetlinkError | undefined)[];
  readonly #each: ((message: Message) => void) | undefined;
  readonly #settled: (exchange: Exchange) => void;
  #open: number;
  #answered: boolean[];
  /** Requests before this one are settled. */
  #settledTo = 0;
  /** The kernel's tables changed while it dumped them: the list may lack or repeat entries. */
  interrupted = false;
  refused = false;
  /** A reply could not be decoded. */
  failure: unknown;

  constructor(options: {
    requests: readonly Request[];
    firstSeq: number;
    untilError: boolean;
    each: ((message: Message) => void) | undefined;
    settled: (exchange: Exchange) => void;
  }) {
    this.requests = options.requests;
    this.firstSeq = options.firstSeq;
    this.untilError = options.untilError;
    this.#each = options.each;
    this.#settled = options.settled;
    this.#answered = options.requests.map(({ silent = false }) => silent);
    this.#open = this.#answered.filter((answered) => !answered).length;
    this.errors = Array<NetlinkError | undefined>(options.requests.length).fill(undefined);
  }

  /** Requests without an outcome. */
  get open(): number {
    return this.#open;
  }

  get done(): boolean {
    return this.#open === 0;
  }

  #what(index: number): string {
    const what = this.requests[index]?.what ?? '';
    return typeof what === 'string' ? what : what();
  }

  #answer(index: number, errno: number, extack?: string): void {
    const isOpen = this.#answered[index] === false;
    if (errno !== 0 && (isOpen || this.requests[index]?.silent)) {
      this.errors[index] ??= new NetlinkError(errno, this.#what(index), extack);
      this.refused = true;
    }
    if (!isOpen) return;
    this.#answered[index] = true;
    this.#open--;
    if (this.done) this.#settled(this);
  }

  /** What stands before an answered request and was not refused has been done: the kernel works in order. */
  #answerSilent(end: number): void {
    for (; this.#settledTo < end; this.#settledTo++) this.#answer(this.#settledTo, 0);
  }

  /** True when this message answered its request (and those before it) for good. */
  receive(message: Message): boolean {
    const index = message.seq - this.firstSeq;
    if (message.flags & FLAG.dumpInterrupted) this.interrupted = true;
    if (message.type === CONTROL.error || message.type === CONTROL.done) {
      if (!this.untilError) this.#answerSilent(index);
      this.#answer(index, ...readStatus(message));
      return true;
    }
    try {
      this.#each?.(message);
    } catch (error) {
      this.failure ??= error;
    }
    return false;
  }

  /** Settles what is still open, of all requests or of the first ones. */
  fail(errno: number, reason?: string, end = this.requests.length): void {
    for (let index = 0; index < end; index++) this.#answer(index, errno, reason);
  }

  /** The kernel had no room for replies. What was asked (of a partly sent exchange: the first `sent`) may have happened. */
  lose(sent?: number): void {
    this.fail(ENOBUFS, 'the reply was lost in an overflow of the socket: it may have happened or not', sent);
  }

  /** The rest of a refused batch was not done. */
  giveUp(): void {
    const ECANCELED = 125;
    this.fail(ECANCELED, 'another message of the same transaction was refused');
  }
}

/** errno (0: done) and the kernel's words of NLMSG_ERROR or NLMSG_DONE (linux/netlink.h struct nlmsgerr). */
const readStatus = ({ type, flags, body }: Message): [errno: number, extack: string | undefined] => {
  if (body.length < 4) return [0, undefined];
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  const errno = Math.abs(view.getInt32(0, true));
  if (errno === 0 || !(flags & FLAG.ackTlvs)) return [errno, undefined];
  let at = 4;
  if (type === CONTROL.error) {
    const echoed = flags & FLAG.capped || body.length < 8 ? HEADER_BYTES : view.getUint32(4, true);
    at += (echoed + 3) & ~3;
  }
  return [errno, at < body.length ? readAttributes(body.subarray(at)).get(EXTACK_TEXT)?.text : undefined];
};
