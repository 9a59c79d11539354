import { KEY_BYTES } from '@unbounded/relay-protocol';

import type { Client } from './client.ts';
import type { Replica } from './links/replica.ts';

export type AuthPolicy = 'off' | 'prefer' | 'require';

/**
 * A key and who has it: a client of this relay, clients of linked replicas, or both. The key is kept as eight numbers,
 * which compare and copy faster than bytes.
 */
export class Entry {
  readonly words: readonly [number, number, number, number, number, number, number, number];
  readonly hash: number;
  client: Client | undefined;
  replicas: Map<Replica, { readonly proven: boolean }> | undefined;
  /** Not in the directory any more: whoever remembers it looks again. */
  isGone = false;
  /** Others of the same hash. */
  next: Entry | undefined;

  constructor(view: DataView, at: number, hash: number) {
    const word = (index: number): number => view.getInt32(at + 4 * index);
    this.words = [word(0), word(1), word(2), word(3), word(4), word(5), word(6), word(7)];
    this.hash = hash;
  }

  /** Whether the key that stands there is this one. */
  matches(view: DataView, at: number): boolean {
    const { words } = this;
    return (
      view.getInt32(at) === words[0] &&
      view.getInt32(at + 4) === words[1] &&
      view.getInt32(at + 8) === words[2] &&
      view.getInt32(at + 12) === words[3] &&
      view.getInt32(at + 16) === words[4] &&
      view.getInt32(at + 20) === words[5] &&
      view.getInt32(at + 24) === words[6] &&
      view.getInt32(at + 28) === words[7]
    );
  }

  /** Puts the key there. */
  writeTo(view: DataView, at: number): void {
    const { words } = this;
    view.setInt32(at, words[0]);
    view.setInt32(at + 4, words[1]);
    view.setInt32(at + 8, words[2]);
    view.setInt32(at + 12, words[3]);
    view.setInt32(at + 16, words[4]);
    view.setInt32(at + 20, words[5]);
    view.setInt32(at + 24, words[6]);
    view.setInt32(at + 28, words[7]);
  }

  get key(): Buffer {
    const key = Buffer.alloc(KEY_BYTES);
    this.words.forEach((word, index) => key.writeInt32BE(word, 4 * index));
    return key;
  }

  /** A replica to which there is a link and at which the key is registered; one where it was proven before others. */
  get replica(): Replica | undefined {
    if (this.replicas === undefined) return undefined;
    let found: Replica | undefined;
    for (const [replica, { proven }] of this.replicas) {
      if (!replica.isReachable) continue;
      if (proven) return replica;
      found ??= replica;
    }
    return found;
  }

  get isProvenElsewhere(): boolean {
    return this.replicas?.values().some(({ proven }) => proven) ?? false;
  }
}

/** Of the key that stands there. */
export type KeyHash = (view: DataView, at: number) => number;

/** 30 bits, small integers for the engine. With a random seed nobody outside can choose keys that share a hash. */
export const seededHash =
  (seed: number): KeyHash =>
  (view, at) => {
    let hash = seed;
    for (let index = 0; index < KEY_BYTES; index += 4) {
      hash = Math.imul(hash ^ view.getInt32(at + index), 0x9e37_79b1);
      hash ^= hash >>> 15;
    }
    return hash >>> 2;
  };

/** What the directory tells about this relay's own clients. */
export interface DirectoryEvents {
  /** `isNew`: nobody here had it. */
  registered(entry: Entry, isNew: boolean): void;
  left(entry: Entry): void;
}

/** Which key is where, and who may have one. */
export class Directory {
  readonly #policy: AuthPolicy;
  readonly #hash: KeyHash;
  readonly #byHash = new Map<number, Entry>();
  readonly #events: DirectoryEvents;

  constructor(policy: AuthPolicy, hash: KeyHash, events: DirectoryEvents) {
    this.#policy = policy;
    this.#hash = hash;
    this.#events = events;
  }

  find(view: DataView, at: number): Entry | undefined {
    let entry = this.#byHash.get(this.#hash(view, at));
    while (entry !== undefined && !entry.matches(view, at)) entry = entry.next;
    return entry;
  }

  findOrAdd(view: DataView, at: number): Entry {
    const found = this.find(view, at);
    if (found !== undefined) return found;
    const entry = new Entry(view, at, this.#hash(view, at));
    entry.next = this.#byHash.get(entry.hash);
    this.#byHash.set(entry.hash, entry);
    return entry;
  }

  /** The entry of the same key that the directory has now: while somebody only asks for a key its entry may go. */
  current(entry: Entry): Entry {
    return entry.isGone ? this.findOrAdd(new DataView(new Uint8Array(entry.key).buffer), 0) : entry;
  }

  /**
   * Gives the key to the client, and returns the one that had it; false: it may not have it. Who has proven a key is
   * displaced only by who proves it as well (unless the policy is off); otherwise the newest has it.
   */
  claim(entry: Entry, client: Client, proven: boolean): Client | undefined | false {
    const holder = entry.client;
    if (!this.mayClaim(entry, client, proven)) return false;
    entry.client = client;
    this.#events.registered(entry, holder === undefined);
    return holder === client ? undefined : holder;
  }

  mayClaim(entry: Entry, client: Client, proven: boolean): boolean {
    if (proven || this.#policy === 'off') return true;
    if (this.#policy === 'require') return false;
    const isHeld = entry.client !== undefined && entry.client !== client && entry.client.isProven;
    return !isHeld && !entry.isProvenElsewhere;
  }

  /** The client has ended; another one may have its key already. */
  release(entry: Entry, client: Client): void {
    if (entry.client === client) {
      entry.client = undefined;
      this.#events.left(entry);
    }
    this.#removeUnused(entry);
  }

  /** @returns the client here that has to go, because it has not proven the key and the one there has */
  addReplica(entry: Entry, replica: Replica, proven: boolean): Client | undefined {
    entry.replicas ??= new Map();
    entry.replicas.set(replica, { proven });
    const isOutranked = proven && this.#policy !== 'off' && entry.client !== undefined && !entry.client.isProven;
    return isOutranked ? entry.client : undefined;
  }

  removeReplica(entry: Entry, replica: Replica): void {
    entry.replicas?.delete(replica);
    if (entry.replicas?.size === 0) entry.replicas = undefined;
    this.#removeUnused(entry);
  }

  #removeUnused(entry: Entry): void {
    if (entry.client !== undefined || entry.replicas !== undefined || entry.isGone) return;
    entry.isGone = true;
    const first = this.#byHash.get(entry.hash);
    if (first === entry) {
      if (entry.next === undefined) this.#byHash.delete(entry.hash);
      else this.#byHash.set(entry.hash, entry.next);
      return;
    }
    for (let other = first; other !== undefined; other = other.next)
      if (other.next === entry) {
        other.next = entry.next;
        return;
      }
  }
}
