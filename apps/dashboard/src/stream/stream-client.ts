import { backoffMs, TRY_LATER_MS } from './backoff.ts';
import { closeMeaning } from './close-codes.ts';
import { heldAfter } from './messages.ts';
import type { StreamState } from './stream-state.ts';

/** What of a WebSocket is used. */
export interface Socket {
  addEventListener(type: 'open', listener: () => void): void;
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(type: 'close', listener: (event: { readonly code: number; readonly reason: string }) => void): void;
  close(): void;
}

/**
 * Whether a position is still the current one, by a conditional request for the view. Pings of the stream are not shown to pages: this is how
 * a page knows that silence means that nothing changed.
 */
export type Check = (
  position: string | undefined,
) => Promise<'current' | 'moved' | 'unauthenticated' | 'forbidden' | 'failed'>;

interface Clock {
  /** Elapsed ms. */
  readonly now: () => number;
  /** @returns what cancels it */
  readonly after: (ms: number, run: () => void) => () => void;
}

export interface StreamClientOptions {
  readonly connect: (position: string | undefined) => Socket;
  readonly check: Check;
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly onState: (state: StreamState) => void;
}

const TICK_MS = 1000;
const CONNECT_MS = 10_000;
/** Silence after which the server is asked. */
const CHECK_AFTER_MS = 8000;
/** Without any answer: the connection is dead, whatever the browser thinks. */
const DEAD_AFTER_MS = 30_000;
/** Having been open for so long, the next attempt is a first one. */
const SETTLED_MS = 10_000;

const NOT_ACCEPTED = 'The server does not accept the token: it is not valid, or has expired.';
const REFUSED = 'The server answers, and does not take the stream: it may have too many dashboards.';
const NOT_ALLOWED = 'The token is valid, and may not read the status of the network.';

/** Follows the live view for as long as the token lets it: from its position again after each break. */
export class StreamClient {
  readonly #options: StreamClientOptions;
  #state: StreamState = { phase: 'connecting' };
  #socket: Socket | undefined;
  #attempt = 0;
  /** Of the phase. */
  #since = 0;
  #isChecking = false;
  #cancelTick: (() => void) | undefined;
  #cancelRetry: (() => void) | undefined;

  constructor(options: StreamClientOptions) {
    this.#options = options;
  }

  get state(): StreamState {
    return this.#state;
  }

  start(): void {
    this.#connect();
    this.#tick();
  }

  stop(): void {
    this.#cancelTick?.();
    this.#cancelRetry?.();
    this.#drop();
  }

  /** The machine slept, the page was hidden, or a network came back: look now. */
  wake(): void {
    if (this.#state.phase === 'waiting') this.#connect();
    else if (this.#state.phase === 'live') void this.#ask();
  }

  #set(change: Partial<StreamState>): void {
    this.#state = { ...this.#state, ...change };
    this.#options.onState(this.#state);
  }

  #enter(phase: StreamState['phase'], change: Partial<StreamState> = {}): void {
    this.#since = this.#options.clock.now();
    const { retryAt: _, reason: __, ...kept } = this.#state;
    this.#state = kept;
    this.#set({ phase, ...change });
  }

  #drop(): void {
    const socket = this.#socket;
    this.#socket = undefined; // what it still says is not heard
    socket?.close();
  }

  #connect(): void {
    this.#cancelRetry?.();
    this.#drop();
    this.#enter('connecting');
    const socket = this.#options.connect(this.#state.position);
    this.#socket = socket;
    const isOurs = (): boolean => this.#socket === socket;
    socket.addEventListener('open', () => {
      // With a position: what was missed follows, or nothing was.
      const change = this.#state.position === undefined ? {} : { confirmedAt: this.#options.clock.now() };
      // This server says so again, if it is hindered.
      if (isOurs()) this.#enter('live', { ...change, notices: [] });
    });
    socket.addEventListener('message', ({ data }) => {
      if (isOurs()) this.#take(data);
    });
    socket.addEventListener('close', ({ code, reason }) => {
      if (isOurs()) this.#closed(code, reason);
    });
  }

  #take(data: unknown): void {
    const { view, position } = this.#state;
    const now = this.#options.clock.now();
    try {
      const held = view && position !== undefined ? { view, position } : undefined;
      const change = heldAfter(held, String(data));
      const isNotice = change !== undefined && 'notices' in change;
      this.#set({ ...change, ...(isNotice ? {} : { updatedAt: now }), confirmedAt: now });
    } catch (error) {
      // What is held may be wrong: all of it again.
      const { position: _, ...rest } = this.#state;
      this.#state = rest;
      this.#retry(`A message cannot be read: ${(error as Error).message}.`);
    }
  }

  #closed(code: number, reason: string): void {
    const wasOpen = this.#state.phase === 'live';
    this.#socket = undefined;
    const meaning = closeMeaning(code, reason);
    if (meaning.isEnd) return this.#end(meaning.text);
    this.#retry(meaning.text, meaning.isLater ? TRY_LATER_MS : 0);
    // A refused upgrade has no code: only a request says why.
    if (!wasOpen) void this.#ask();
  }

  #retry(reason: string, atLeastMs = 0): void {
    const { clock, random } = this.#options;
    if (this.#state.phase === 'live' && clock.now() - this.#since >= SETTLED_MS) this.#attempt = 0;
    const wait = Math.max(atLeastMs, backoffMs(this.#attempt++, random()));
    this.#drop();
    this.#enter('waiting', { reason, retryAt: clock.now() + wait });
    this.#cancelRetry?.();
    this.#cancelRetry = clock.after(wait, () => this.#connect());
  }

  #end(reason: string): void {
    this.stop();
    this.#enter('ended', { reason });
  }

  #tick(): void {
    const { clock } = this.#options;
    const { phase, confirmedAt } = this.#state;
    const now = clock.now();
    if (phase === 'connecting' && now - this.#since >= CONNECT_MS) this.#retry('The server does not answer.');
    if (phase === 'live') {
      const silentMs = now - Math.max(this.#since, confirmedAt ?? 0);
      if (silentMs >= DEAD_AFTER_MS) this.#retry('The server does not answer any more.');
      else if (silentMs >= CHECK_AFTER_MS) void this.#ask();
    }
    this.#cancelTick = clock.after(TICK_MS, () => this.#tick());
  }

  async #ask(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const { position } = this.#state;
    const answer = await this.#options.check(position).catch(() => 'failed' as const);
    this.#isChecking = false;
    if (this.#state.phase === 'ended') return;
    if (answer === 'unauthenticated') return this.#end(NOT_ACCEPTED);
    if (answer === 'forbidden') return this.#end(NOT_ALLOWED);
    if (this.#state.phase === 'waiting' && answer !== 'failed') this.#set({ reason: REFUSED });
    if (this.#state.phase !== 'live' || position === undefined || position !== this.#state.position) return;
    if (answer === 'current') this.#set({ confirmedAt: this.#options.clock.now() });
    // The view went on, and the stream says nothing.
    else if (answer === 'moved') this.#connect();
  }
}
