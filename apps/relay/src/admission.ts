import { Crowd } from '@unbounded/host/crowd';

export interface AdmissionLimits {
  /** Connections that have a key. */
  readonly maxConnections: number;
  /** Connections that have none (yet), besides. */
  readonly maxPending: number;
  readonly maxConnectionsPerAddress: number;
  /** New connections of one address, a second; a burst of five seconds' worth is let through. */
  readonly newConnectionsPerSecond: number;
}

export type Refusal = 'total' | 'address' | 'rate';

/** One connection, as it counts here. */
export interface Guest {
  /** Ends it, because another one has taken its place. */
  evict(): void;
}

/** A connection's place: what holds it changes while it opens. */
export interface Place {
  holder: Guest;
  address: string | undefined;
}

interface AddressState {
  open: number;
  tokens: number;
  at: number;
}

const BURST_SECONDS = 5;

/** A host has a whole /64 of IPv6 for itself, so that counts as one address. */
export const limitedAs = (address: string): string => {
  if (!address.includes(':')) return address;
  if (address.startsWith('::ffff:') && address.includes('.')) return address.slice('::ffff:'.length);
  const [head = '', tail] = address.split('%')[0]!.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const behind = tail === '' ? [] : tail.split(':');
    while (groups.length + behind.length < 8) groups.push('0');
    groups.push(...behind);
  }
  return `${groups.slice(0, 4).join(':')}::/64`;
};

/**
 * Who may connect. Connections without a key are bounded apart from those that have one, so that strangers, who never get
 * that far, take no member's place: a new connection is always let in, and the oldest without a key goes for it. A member that has
 * proven its key takes the place of one that has not.
 */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #addresses = new Map<string, AddressState>();
  readonly #pending: Crowd<Place>;
  readonly #unproven = new Set<Place>();
  readonly #proven = new Set<Place>();

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
    this.#pending = new Crowd(limits.maxPending);
  }

  get open(): number {
    return this.pending + this.#unproven.size + this.#proven.size;
  }

  /** Connections without a key. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Counts a new connection in, from that address as the socket has it; `leave` counts it out. */
  enter(place: Place, from: string): void {
    this.#evict(this.#pending.enter(place, from));
  }

  /** Counts it for its address, which a PROXY header may have named. */
  enterAddress(place: Place, address: string, now: number): Refusal | undefined {
    const { maxConnectionsPerAddress, newConnectionsPerSecond } = this.#limits;
    const burst = newConnectionsPerSecond * BURST_SECONDS;
    const state = this.#addresses.get(address) ?? { open: 0, tokens: burst, at: now };
    state.tokens = Math.min(burst, state.tokens + ((now - state.at) / 1000) * newConnectionsPerSecond);
    state.at = now;
    this.#addresses.set(address, state);
    if (state.tokens < 1) return 'rate';
    // Behind one address may be members and strangers.
    const oldest = this.#pending.oldestOf(address);
    if (state.open >= maxConnectionsPerAddress && oldest !== place) this.#evict(oldest);
    if (state.open >= maxConnectionsPerAddress) return 'address';
    state.tokens--;
    state.open++;
    this.#pending.rename(place, address);
    place.address = address;
    return undefined;
  }

  /** It is to have a key; false: there are too many that have one. */
  admit(place: Place, isProven: boolean): boolean {
    if (this.#proven.has(place) || (!isProven && this.#unproven.has(place))) return true;
    const isNew = !this.#unproven.has(place);
    if (isNew && this.#unproven.size + this.#proven.size >= this.#limits.maxConnections) {
      const [victim] = isProven ? this.#unproven : [];
      if (victim === undefined) return false;
      this.#evict(victim);
    }
    this.#pending.leave(place);
    this.#unproven.delete(place);
    (isProven ? this.#proven : this.#unproven).add(place);
    return true;
  }

  leave(place: Place): void {
    this.#pending.leave(place);
    this.#unproven.delete(place);
    this.#proven.delete(place);
    const state = place.address === undefined ? undefined : this.#addresses.get(place.address);
    if (state !== undefined) state.open--;
    place.address = undefined;
  }

  /** Forgets addresses that have no connection and their full burst. To be called now and then. */
  sweep(now: number): void {
    for (const [address, { open, at }] of this.#addresses)
      if (open === 0 && now - at > BURST_SECONDS * 1000) this.#addresses.delete(address);
  }

  #evict(victim: Place | undefined): void {
    if (victim === undefined) return;
    victim.holder.evict();
    this.leave(victim);
  }
}
