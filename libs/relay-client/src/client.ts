import { HEALTH, KEY_BYTES, MAX_PAYLOAD_BYTES } from '@unbounded/relay-protocol';
import { type Logger, silentLogger } from '@unbounded/telemetry';

import { leaveDelay, MOST_FAILURES, MOST_REFUSALS, reconnectDelay, REFUSED_FAILURES, STABLE_MS } from './backoff.ts';
import { type Clock, systemClock, type Timer } from './clock.ts';
import { type Dial, dialWith } from './dial.ts';
import { type Endpoint, formatEndpoint } from './endpoint.ts';
import { Handover } from './handover.ts';
import { type Identity, Session, type SessionEnd, type SessionEvents, type SessionOptions } from './session.ts';
import { newTallies, type Tallies } from './tallies.ts';

const BUDGET_BYTES = 512 * 1024;
/** A connection whose relay has asked to leave, and has not ended it, is ended so long after the next one was made. */
const FORMER_MS = 30_000;

/** What is the same for all clients of a pool. */
export interface ClientSettings {
  readonly identity: Identity;
  /** The relay's own public key, 32 bytes: a relay that does not prove that it has it is left. Needs `exchange`. */
  readonly pinnedKey?: Uint8Array;
  /** Bytes that wait for a relay that does not take them, 512 KiB when not set; beyond it the oldest go. */
  readonly budgetBytes?: number;
  readonly dial?: Dial;
  readonly clock?: Clock;
  /** From 0 to below 1; `Math.random` when not set. */
  readonly random?: () => number;
  readonly logger?: Logger;
  readonly tallies?: Tallies;
}

/** @throws Error that names the key which is wrong or missing */
export const checkKeys = ({ identity, pinnedKey }: ClientSettings): void => {
  for (const [name, key] of Object.entries({ 'identity.publicKey': identity.publicKey, pinnedKey }))
    if (key !== undefined && key.length !== KEY_BYTES)
      throw new Error(`${name} has ${key.length} bytes: must have ${KEY_BYTES}`);
  if (pinnedKey !== undefined && identity.exchange === undefined)
    throw new Error('a pinned relay key is proven together with the own one: identity.exchange is missing');
};

export interface ClientOptions extends ClientSettings {
  /** Ways to one relay, or to relays that are linked: after a failure the next one is tried. At least one. */
  readonly ways: readonly Endpoint[];
  readonly events: ClientEvents;
}

export interface ClientEvents {
  /** What `state` says is another thing now. */
  onState(client: RelayClient): void;
  /** From a peer. Both may be kept. */
  onData(client: RelayClient, key: Buffer, payload: Buffer): void;
  /** The peer is not registered with this relay, any more or yet. `reason` is one of PEER_GONE. */
  onPeerGone(client: RelayClient, key: Uint8Array, reason: number): void;
}

export interface ClientState {
  /** `waiting`: for the next attempt; `leaving`: connected, but the relay is about to end. */
  readonly phase: 'idle' | 'connecting' | 'connected' | 'leaving' | 'waiting' | 'closed';
  /** Where it is connected, or was tried last. */
  readonly endpoint: string;
  /** Counts connections. */
  readonly generation: number;
  /** Whether both ends have proven their keys. */
  readonly isProven: boolean;
  /** Whether the relay speaks the extension. */
  readonly isExtended: boolean;
  readonly rttMs: number | undefined;
  /** Bytes that wait to be sent. */
  readonly queued: number;
  /** Attempts and short sessions in a row. */
  readonly failures: number;
  readonly lastEnd: SessionEnd | undefined;
}

/**
 * A client of one relay that comes back when the connection is lost. There are up to three connections at a time: the
 * one that is sent on, one that is being made, and, when a relay has asked to leave, the one before, which is read until
 * the relay ends it. Every event belongs to its session, so a second sign of the same failure changes nothing.
 */
export class RelayClient {
  readonly #settings: Required<Pick<ClientSettings, 'clock' | 'random' | 'logger' | 'tallies'>>;
  readonly #session: SessionOptions;
  readonly #events: ClientEvents;
  #ways: readonly Endpoint[];
  #way = 0;
  #current: Session | undefined;
  #dialling: Session | undefined;
  #former: { readonly session: Session; readonly timer: Timer } | undefined;
  #handover: Handover | undefined;
  #retry: Timer | undefined;
  #leave: Timer | undefined;
  #isLeaving = false;
  #isRetired = false;
  #isClosed = false;
  #hasRival = false;
  #failures = 0;
  /** Connections in a row that were asked to leave before they were stable. */
  #drains = 0;
  /** Connections in a row that the relay refused in words. */
  #refusals = 0;
  #generation = 0;
  #lastEnd: SessionEnd | undefined;

  constructor(options: ClientOptions) {
    const { identity, pinnedKey, budgetBytes = BUDGET_BYTES, dial = dialWith(), clock = systemClock } = options;
    const { random = Math.random, logger = silentLogger, tallies = newTallies(), ways } = options;
    checkKeys(options);
    if (ways.length === 0) throw new Error('a relay client has no endpoint: it needs at least one');
    this.#settings = { clock, random, logger, tallies };
    this.#session = { identity, dial, clock, tallies, budgetBytes, ...(pinnedKey && { pinnedKey }) };
    this.#events = options.events;
    this.#ways = ways;
  }

  get isConnected(): boolean {
    return this.#current !== undefined && !this.#isClosed;
  }

  /** The relay has said that it will end, or it is not wanted any more: others are better. */
  get isLeaving(): boolean {
    return this.#isLeaving || this.#isRetired;
  }

  get tallies(): Tallies {
    return this.#settings.tallies;
  }

  get state(): ClientState {
    const session = this.#current;
    const shown = session?.endpoint ?? this.#dialling?.endpoint ?? this.#nextWay();
    return {
      phase: this.#phase(),
      endpoint: formatEndpoint(shown),
      generation: this.#generation,
      isProven: session?.isProven ?? false,
      isExtended: session?.isExtended ?? false,
      rttMs: session?.rttMs,
      queued: session?.queued ?? 0,
      failures: this.#failures,
      lastEnd: this.#lastEnd,
    };
  }

  start(): void {
    if (!this.#isClosed && this.#dialling === undefined && this.#current === undefined) this.#dial();
  }

  /** Other ways, for the next connection. @throws Error when there is none */
  setWays(ways: readonly Endpoint[]): void {
    if (ways.length === 0) throw new Error('a relay client has no endpoint: it needs at least one');
    this.#ways = ways;
    this.#way %= ways.length;
  }

  /**
   * Sends to a peer; false: it went nowhere. The payload must not change afterwards: it is written at the end of this
   * turn of the event loop, or later when the relay is slow.
   */
  send(key: Uint8Array, payload: Uint8Array): boolean {
    const { dropped } = this.#settings.tallies;
    if (payload.length > MAX_PAYLOAD_BYTES) dropped.tooLong++;
    else if (this.#current === undefined || this.#isClosed) dropped.noRelay++;
    else {
      if (this.#handover === undefined) this.#current.sendData(key, payload);
      else this.#handover.add(payload.length, () => this.#current?.sendData(key, payload));
      return true;
    }
    return false;
  }

  /** Calls `done` when the relay has taken what was sent before, or the connection is lost; at once if it cannot tell. */
  barrier(done: () => void): void {
    if (this.#current === undefined) done();
    else this.#current.barrier(done);
  }

  /** Makes no new connection; the one there is stays until it ends. */
  retire(): void {
    if (this.#isRetired) return;
    this.#isRetired = true;
    this.#retry?.cancel();
    this.#retry = undefined;
    this.#dialling?.end('stopped', 'not wanted any more');
    this.#changed();
  }

  /** Takes back `retire`. */
  revive(): void {
    if (!this.#isRetired || this.#isClosed) return;
    this.#isRetired = false;
    this.#changed();
    this.start();
  }

  /** Ends its connections after what has been sent; there are no events any more. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#retry?.cancel();
    this.#leave?.cancel();
    this.#handover?.finish();
    for (const session of [this.#current, this.#dialling, this.#former?.session]) session?.leave();
  }

  #phase(): ClientState['phase'] {
    if (this.#isClosed) return 'closed';
    if (this.#current !== undefined) return this.isLeaving ? 'leaving' : 'connected';
    if (this.#dialling !== undefined) return 'connecting';
    return this.#retry === undefined ? 'idle' : 'waiting';
  }

  #nextWay(): Endpoint {
    return this.#ways[this.#way]!;
  }

  #changed(): void {
    if (!this.#isClosed) this.#events.onState(this);
  }

  #dial(): void {
    this.#retry = undefined;
    this.#generation++;
    this.#dialling = new Session(this.#nextWay(), this.#session, this.#sessionEvents);
    this.#changed();
  }

  readonly #sessionEvents: SessionEvents = {
    onUsable: (session) => this.#onUsable(session),
    onChange: () => this.#changed(),
    onEnd: (session, end) => this.#onEnd(session, end),
    onData: (key, payload) => {
      if (!this.#isClosed) this.#events.onData(this, key, payload);
    },
    onPeerGone: (session, key, reason) => {
      if (!this.#isClosed && session === this.#current) this.#events.onPeerGone(this, key, reason);
    },
    onHealth: (session, code, text) => {
      if (code === HEALTH.duplicateKey && session === this.#current) this.#hasRival = this.#dialling === undefined;
      const relay = formatEndpoint(session.endpoint);
      this.#settings.logger.warn({ relay, code }, `error from the relay: ${text}`);
    },
    onDrain: (session, reconnectInMs, tryForMs) => this.#onDrain(session, Math.min(reconnectInMs, tryForMs)),
  };

  #onUsable(session: Session): void {
    const former = this.#current;
    this.#dialling = undefined;
    this.#current = session;
    this.#stopLeaving();
    this.#hasRival = false;
    if (former !== undefined) {
      const { clock } = this.#settings;
      this.#former?.session.leave();
      this.#former = { session: former, timer: clock.after(FORMER_MS, () => former.leave()) };
      this.#handover?.finish();
      const handover = new Handover(
        clock,
        (done) => former.barrier(done),
        () => {
          this.#handover = undefined;
        },
      );
      if (!handover.isDone) this.#handover = handover;
    }
    const relay = formatEndpoint(session.endpoint);
    this.#settings.logger.info({ relay, isProven: session.isProven }, 'connected to the relay');
    this.#changed();
  }

  #onEnd(session: Session, end: SessionEnd): void {
    if (session === this.#former?.session) {
      this.#former.timer.cancel();
      this.#former = undefined;
      return;
    }
    const wasCurrent = session === this.#current;
    if (wasCurrent) {
      this.#current = undefined;
      this.#stopLeaving();
    } else this.#dialling = undefined;
    if (this.#isClosed) return;
    this.#lastEnd = end;
    // Another connection may be on its way already: its relay has asked to leave.
    if (!this.#isRetired && this.#dialling === undefined && this.#retry === undefined) this.#retryLater(session, end);
    const { logger } = this.#settings;
    logger.warn({ reason: end.reason, failures: this.#failures }, `relay lost: ${end.message}`);
    this.#changed();
  }

  #retryLater(session: Session, { reason }: SessionEnd): void {
    const { clock, random } = this.#settings;
    const { usableSince } = session;
    if (this.#isStable(session)) this.#failures = 0;
    if (usableSince === undefined) this.#way = (this.#way + 1) % this.#ways.length;
    // While there are ways that have not been tried, the next one follows soon.
    const isRound = usableSince !== undefined || this.#way === 0;
    if (isRound) this.#failures++;
    if (this.#hasRival) this.#failures = Math.max(this.#failures, MOST_FAILURES);
    this.#refusals = reason === 'refused' && !this.#hasRival ? this.#refusals + 1 : 0;
    const isNew = this.#refusals > 0 && this.#refusals <= MOST_REFUSALS;
    this.#hasRival = false;
    const failures = isNew ? Math.min(this.#failures, REFUSED_FAILURES) : this.#failures;
    this.#retry = clock.after(reconnectDelay(isRound ? failures : 1, random), () => this.#dial());
  }

  #isStable({ usableSince }: Session): boolean {
    return usableSince !== undefined && this.#settings.clock.now() - usableSince >= STABLE_MS;
  }

  /** The relay will end: a new connection is made while this one still works, at a moment of one's own. */
  #onDrain(session: Session, withinMs: number): void {
    if (session !== this.#current || this.#leave !== undefined || this.#isClosed) return;
    const { clock, random, logger } = this.#settings;
    logger.info({ relay: formatEndpoint(session.endpoint), withinMs }, 'relay is draining');
    this.#drains = this.#isStable(session) ? 0 : this.#drains + 1;
    // A relay that drains each connection at once gets them no faster than one that ends them; peers go to other relays all the same.
    const waitMs = this.#drains === 0 ? 0 : reconnectDelay(this.#drains, random);
    const leaveMs = leaveDelay(withinMs, random);
    this.#leave = clock.after(leaveMs, () => {
      this.#isLeaving = true;
      const isFree = !this.#isRetired && this.#dialling === undefined && this.#retry === undefined;
      if (isFree && waitMs <= leaveMs) return this.#dial();
      if (isFree) this.#retry = clock.after(waitMs - leaveMs, () => this.#dial());
      this.#changed();
    });
  }

  #stopLeaving(): void {
    this.#isLeaving = false;
    this.#leave?.cancel();
    this.#leave = undefined;
  }
}
