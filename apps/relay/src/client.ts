import type { Socket } from 'node:net';

import {
  CAPABILITY,
  DATA_HEAD_BYTES,
  encodeError,
  encodeExtension,
  encodeRegister,
  decodeExtension,
  type ExtensionMessage,
  FRAME,
  FrameError,
  frameEnd,
  HEADER_BYTES,
  HEALTH,
  isLowOrderKey,
  KEEPALIVE_MS,
  LENGTH_BYTES,
  lengthAt,
  PEER_GONE,
  REGISTER_LENGTH,
} from '@unbounded/relay-protocol';

import type { Guest, Place } from './admission.ts';
import type { ClientContext } from './client-context.ts';
import type { Entry } from './directory.ts';
import type { Pending } from './handshake.ts';
import { HEADROOM } from './memory.ts';
import { Intake } from './intake.ts';
import { Outbox } from './outbox.ts';
import { FAREWELL_MS, REFUSALS } from './refusals.ts';
import type { CloseReason } from './tallies.ts';
import { peerGoneTokens, pingTokens, rateTokens, type Tokens } from './tokens.ts';

/** Length of a frame that is taken in parts from a client without a key; what it says there is short. */
const MOST_UNREGISTERED = 4096;

/**
 * One connection of a client, from its first frame on. `onBytes` is the path of every packet: it finds the frames of a read,
 * puts the sender's key where the destination's was, and hands runs of frames to the round, which writes them.
 */
export class Client implements Guest {
  readonly #context: ClientContext;
  readonly socket: Socket;
  readonly #place: Place;
  readonly outbox: Outbox;
  /** The key that it named, from its Register on, whether it got it or not. */
  #entry: Entry | undefined;
  /** Whether frames for the key come here. */
  isRegistered = false;
  isProven = false;
  isEnded = false;
  #intake: Intake | undefined;
  /** Where the last frame went: most go where the one before went. */
  #last: Entry | undefined;
  #pending: Pending | undefined;
  #capabilities = 0;
  #hasSaidHello = false;
  /** When it must have registered or proven; 0: it has. */
  #deadlineAt: number;
  #lastReadAt: number;
  readonly #rate: Tokens | undefined;
  /** Made with the first of each. */
  #gone: Tokens | undefined;
  #pings: Tokens | undefined;

  constructor(context: ClientContext, socket: Socket, place: Place) {
    const now = performance.now();
    this.#context = context;
    this.socket = socket;
    this.#place = place;
    this.outbox = new Outbox(socket, context.outboxes);
    this.#lastReadAt = now;
    this.#deadlineAt = now + context.limits.registerDeadlineMs;
    this.#rate = rateTokens(context.limits.bytesPerSecond, now);
  }

  /** So many bytes stand at HEADROOM of the read buffer, until this returns. */
  onBytes(count: number): void {
    if (this.isEnded) return;
    const { slab, partials, round } = this.#context;
    const now = performance.now();
    this.#lastReadAt = now;
    const end = HEADROOM + count;
    const start = this.#intake === undefined ? HEADROOM : this.#intake.open(count);
    if (start < 0) return;
    const rest = this.#takeFrames(start, end, now);
    round.flush(now, this);
    if (this.isEnded) return;
    if (rest < end) {
      // A client without a key gets no memory for long frames.
      if (!this.isRegistered && end - rest >= LENGTH_BYTES && lengthAt(slab.bytes, rest) > MOST_UNREGISTERED)
        return this.end('bad-length');
      this.#intake ??= new Intake(slab, partials);
      this.#intake.keep(rest, end, now);
    }
    const debtMs = this.#rate?.spend(count, now) ?? 0;
    if (debtMs > 0) this.#context.holds.holdForRate(this, debtMs, now);
  }

  canWait(outbox: Outbox, now: number): boolean {
    return this.#context.holds.canWait(this, outbox, now);
  }

  /** Called by the round: that outbox fills. */
  onFilling(outbox: Outbox, now: number): void {
    if (!this.isEnded) this.#context.holds.holdForRoom(this, outbox, now);
  }

  /** Looks at deadlines; called once a second. */
  check(now: number): void {
    const { idleTimeoutMs, writeTimeoutMs } = this.#context.limits;
    if (this.outbox.isStuck(now, writeTimeoutMs)) return this.end('slow');
    if (now - this.#lastReadAt > idleTimeoutMs) return this.end('idle');
    if (this.#intake?.hasWaitedTooLong(now)) return this.end('unfinished');
    if (this.#deadlineAt === 0 || now < this.#deadlineAt) return;
    if (this.#entry === undefined) return this.end('not-registered');
    this.#refuse(this.#context.policy === 'require' ? REFUSALS.unproven : REFUSALS.provenByAnother, 'not-proven');
  }

  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    if (!this.isEnded) this.socket.resume();
  }

  /** Another client has the key now. */
  displace(): void {
    this.tellHealth(HEALTH.duplicateKey, 'another client has registered your key');
    this.end('displaced');
  }

  /** Another replica has a client that has proven the key. */
  outrank(): void {
    this.#refuse('another client has proven this key', 'displaced');
  }

  /** Its key was taken off the list. @returns whether it had to go */
  endUnlessAllowed(): boolean {
    if (this.#entry === undefined || this.#isAllowed(this.#entry.key)) return false;
    this.#refuse(REFUSALS.notPermitted, 'not-permitted');
    return true;
  }

  #isAllowed(key: Uint8Array): boolean {
    return this.#context.allowed?.has(key) !== false;
  }

  evict(): void {
    this.end('evicted');
  }

  /** Asks it to go elsewhere; false: it does not understand. */
  askToLeave(reconnectInMs: number, tryForMs: number): boolean {
    if ((this.#capabilities & CAPABILITY.drain) === 0) return false;
    this.#send({ kind: 'drain', reconnectInMs, tryForMs });
    return true;
  }

  tellHealth(code: number, text: string): void {
    if ((this.#capabilities & CAPABILITY.health) !== 0) this.#send({ kind: 'health', code, text });
  }

  /** Ends the connection at once. */
  end(reason: CloseReason): void {
    this.socket.destroy();
    this.onClosed(reason);
  }

  /** The connection has ended, by whomever. */
  onClosed(reason: CloseReason): void {
    if (this.isEnded) return;
    this.isEnded = true;
    const { tallies, directory, holds, admission } = this.#context;
    tallies.closed[reason]++;
    admission.leave(this.#place);
    this.#intake?.clear();
    holds.forget(this);
    if (this.#entry !== undefined) directory.release(this.#entry, this);
    this.isRegistered = false;
    this.outbox.close();
    this.#context.onEnded(this);
  }

  /**
   * Takes all whole frames between `start` and `end`, and says where the rest begins. What goes to one destination without
   * a gap is one segment.
   */
  #takeFrames(start: number, end: number, now: number): number {
    const { slab, round } = this.#context;
    const { bytes } = slab;
    if (this.#entry === undefined && !this.#mayBeRegister(start, end)) return end;
    let runTo: Client | undefined;
    let runStart = 0;
    let at = start;
    for (;;) {
      const next = frameEnd(bytes, at, end);
      if (next <= 0) {
        if (runTo !== undefined) round.add(runTo.outbox, runStart, at);
        if (next < 0) this.end('bad-length');
        return at;
      }
      const to =
        bytes[at + LENGTH_BYTES] === FRAME.data && this.isRegistered
          ? this.#route(at, next, now)
          : this.#takeOther(at, next, now);
      if (to !== runTo) {
        if (runTo !== undefined) round.add(runTo.outbox, runStart, at);
        runTo = to;
        runStart = at;
      }
      if (this.isEnded) return end;
      at = next;
    }
  }

  /** The client to which a Data frame goes, after its own key has replaced the destination's; undefined: none here. */
  #route(at: number, next: number, now: number): Client | undefined {
    const { slab, directory, tallies } = this.#context;
    const { view } = slab;
    const keyAt = at + HEADER_BYTES;
    if (next - at < DATA_HEAD_BYTES) {
      tallies.dropped.malformed++;
      return undefined;
    }
    let entry = this.#last;
    if (entry === undefined || entry.isGone || !entry.matches(view, keyAt)) {
      const wasHere = entry?.isGone === true && entry.matches(view, keyAt);
      entry = directory.find(view, keyAt);
      if (entry === undefined) {
        tallies.dropped.unknown++;
        this.#tellGone(keyAt, wasHere ? PEER_GONE.left : PEER_GONE.notHere, now);
        return undefined;
      }
      this.#last = entry;
    }
    const { client } = entry;
    if (client === undefined) {
      this.#routeElsewhere(entry, at, next, now);
      return undefined;
    }
    this.#entry!.writeTo(view, keyAt);
    tallies.frames++;
    tallies.bytes += next - at;
    return client;
  }

  #routeElsewhere(entry: Entry, at: number, next: number, now: number): void {
    const { slab, tallies } = this.#context;
    const { replica } = entry;
    if (replica === undefined) {
      tallies.dropped.unknown++;
      this.#tellGone(at + HEADER_BYTES, PEER_GONE.notHere, now);
      return;
    }
    tallies.linkFrames++;
    replica.forward(slab.bytes, { at, end: next, sender: this.#entry!.key }, now);
  }

  /** The first frame must be a Register, and that is said as soon as its head is there. */
  #mayBeRegister(start: number, end: number): boolean {
    const { bytes } = this.#context.slab;
    if (end - start < LENGTH_BYTES) return true;
    const isRegister =
      lengthAt(bytes, start) === REGISTER_LENGTH &&
      (end - start === LENGTH_BYTES || bytes[start + LENGTH_BYTES] === FRAME.register);
    if (!isRegister) this.end('no-register');
    return isRegister;
  }

  /** Any frame but Data of a registered client. Always undefined: it goes nowhere. */
  #takeOther(at: number, next: number, now: number): undefined {
    const { slab, tallies } = this.#context;
    const type = slab.bytes[at + LENGTH_BYTES]!;
    if (this.#entry === undefined) this.#register(at + HEADER_BYTES, now);
    else if (type === FRAME.data) tallies.dropped.unregistered++;
    else if (this.#isExpected(type, next - at, now)) {
      // A copy: what is kept of it must outlive the read.
      const frame = Uint8Array.prototype.slice.call(slab.bytes, at, next);
      this.#takeExtension(frame, now);
    } else if (type !== FRAME.keepalive) tallies.ignored++;
    return undefined;
  }

  #register(keyAt: number, now: number): void {
    const { slab, directory, policy, limits, tallies } = this.#context;
    if (isLowOrderKey(slab.bytes.subarray(keyAt, keyAt + 32))) {
      tallies.handshakes.lowOrder++;
      return this.#refuse('the key is a point of low order, nobody’s key', 'not-proven');
    }
    if (!this.#isAllowed(slab.bytes.subarray(keyAt, keyAt + 32)))
      return this.#refuse(REFUSALS.notPermitted, 'not-permitted');
    this.#entry = directory.findOrAdd(slab.view, keyAt);
    if (this.#claim(false)) tallies.registrations.unproven++;
    else if (!this.isEnded)
      this.#deadlineAt = now + (policy === 'require' ? limits.proofDeadlineMs : limits.registerDeadlineMs);
  }

  /** Asks for the key; who had it before goes when this client has it. */
  #claim(proven: boolean): boolean {
    const { directory, admission } = this.#context;
    this.#entry = directory.current(this.#entry!);
    if (!directory.mayClaim(this.#entry, this, proven)) return false;
    if (!admission.admit(this.#place, proven)) {
      this.#refuse(REFUSALS.tooMany, 'too-many');
      return false;
    }
    const displaced = directory.claim(this.#entry, this, proven);
    if (displaced === false) return false;
    this.isProven = proven;
    this.isRegistered = true;
    this.#deadlineAt = 0;
    displaced?.displace();
    return true;
  }

  /** An extension that somebody waits for; any other one is not even decoded, since who sends many would hold up everybody. */
  #isExpected(type: number, bytes: number, now: number): boolean {
    if (type === FRAME.hello) return !this.#hasSaidHello && bytes <= MOST_UNREGISTERED;
    if (type === FRAME.proof) return this.#pending !== undefined;
    if (type !== FRAME.ping || !this.#hasSaidHello || !this.isRegistered) return false;
    return (this.#pings ??= pingTokens(now)).take(now);
  }

  #takeExtension(frame: Uint8Array, now: number): void {
    let message: ExtensionMessage | undefined;
    try {
      message = decodeExtension(frame);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      return this.#refuse(error.message, 'malformed');
    }
    if (message?.kind === 'hello') {
      this.#hasSaidHello = true;
      const register = encodeRegister(this.#entry!.key);
      this.#pending = this.#context.verifier.challenge({ register, helloFrame: frame, hello: message }, now);
      this.#capabilities = this.#pending.capabilities;
      this.#sendFrame(this.#pending.challenge);
    } else if (message?.kind === 'proof' && this.#pending !== undefined) {
      const pending = this.#pending;
      this.#pending = undefined;
      void this.#prove(pending, message.tag, now);
    } else if (message?.kind === 'ping') this.#send({ kind: 'pong', data: message.data });
    else this.#context.tallies.ignored++;
  }

  async #prove(pending: Pending, tag: Uint8Array, now: number): Promise<void> {
    const { verifier, tallies, limits, outboxes } = this.#context;
    if (now > pending.expiresAt) {
      tallies.handshakes.expired++;
      return this.#refuse('the proof came too late', 'not-proven');
    }
    const verdict = await verifier.verify(pending, this.#entry!.key, tag);
    if (this.isEnded) return;
    tallies.handshakes[verdict.kind]++;
    if (verdict.kind !== 'proven') {
      const isBusy = verdict.kind === 'busy';
      return this.#refuse(isBusy ? 'too many handshakes: try again' : 'the proof does not match the key', 'not-proven');
    }
    // The list may be another since Register.
    if (this.endUnlessAllowed() || !this.#claim(true)) return;
    tallies.registrations.proven++;
    this.#send({
      kind: 'ready',
      tag: verdict.readyTag,
      session: this.#context.nextSession++,
      keepaliveMs: Math.min(KEEPALIVE_MS, Math.floor(limits.idleTimeoutMs / 3)),
      idleTimeoutMs: limits.idleTimeoutMs,
      queueBytes: outboxes.queueBytes,
      bytesPerSecond: limits.bytesPerSecond,
    });
  }

  /** Says why, and ends the connection. */
  #refuse(text: string, reason: CloseReason): void {
    if (this.isEnded) return;
    this.#sendFrame(encodeError(text));
    this.socket.destroySoon();
    setTimeout(() => this.socket.destroy(), FAREWELL_MS).unref();
    this.onClosed(reason);
  }

  #send(message: ExtensionMessage): void {
    this.#sendFrame(encodeExtension(message));
  }

  #sendFrame(frame: Uint8Array): void {
    this.outbox.send(Buffer.from(frame.buffer, frame.byteOffset, frame.length), 0, frame.length, performance.now());
  }

  #tellGone(keyAt: number, reason: number, now: number): void {
    if ((this.#capabilities & CAPABILITY.peerGone) === 0) return;
    this.#gone ??= peerGoneTokens(now);
    if (!this.#gone.take(now)) return;
    const key = this.#context.slab.bytes.subarray(keyAt, keyAt + 32);
    this.#send({ kind: 'peerGone', key, reason: this.#isAllowed(key) ? reason : PEER_GONE.notPermitted });
  }
}
