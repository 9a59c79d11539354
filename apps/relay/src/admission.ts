export interface AdmissionLimits {
  readonly maxConnections: number;
  readonly maxConnectionsPerAddress: number;
  /** New connections of one address, a second; a burst of five seconds' worth is let through. */
  readonly newConnectionsPerSecond: number;
}

export type Refusal = 'total' | 'address' | 'rate';

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

/** Who may connect: so many in all, so many from an address, so many new ones from an address in a time. */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #addresses = new Map<string, AddressState>();
  #open = 0;

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  get open(): number {
    return this.#open;
  }

  /** Counts a connection in; `leave` counts it out. */
  enter(): Refusal | undefined {
    if (this.#open >= this.#limits.maxConnections) return 'total';
    this.#open++;
    return undefined;
  }

  leave(): void {
    this.#open--;
  }

  /** Counts it in for its address, which a PROXY header may have named; `leaveAddress` counts it out. */
  enterAddress(address: string, now: number): Refusal | undefined {
    const { maxConnectionsPerAddress, newConnectionsPerSecond } = this.#limits;
    const burst = newConnectionsPerSecond * BURST_SECONDS;
    const state = this.#addresses.get(address) ?? { open: 0, tokens: burst, at: now };
    state.tokens = Math.min(burst, state.tokens + ((now - state.at) / 1000) * newConnectionsPerSecond);
    state.at = now;
    this.#addresses.set(address, state);
    if (state.open >= maxConnectionsPerAddress) return 'address';
    if (state.tokens < 1) return 'rate';
    state.tokens--;
    state.open++;
    return undefined;
  }

  leaveAddress(address: string): void {
    const state = this.#addresses.get(address);
    if (state !== undefined) state.open--;
  }

  /** Forgets addresses that have no connection and their full burst. To be called now and then. */
  sweep(now: number): void {
    for (const [address, { open, at }] of this.#addresses)
      if (open === 0 && now - at > BURST_SECONDS * 1000) this.#addresses.delete(address);
  }
}
