import type { RelayClient } from './client.ts';
import type { Handover } from './handover.ts';
import type { Relay } from './relay-set.ts';
import { pairOf, ranked } from './rendezvous.ts';

export type OnPacket = (payload: Buffer) => void;

/**
 * By which relay a peer is reached: one at a time, so that packets stay in order, and the same one until it fails the
 * peer. Both ends of a pair prefer the same relay.
 */
export class Route {
  readonly key: Uint8Array;
  readonly onPacket: OnPacket;
  readonly #pair: Uint8Array;
  /** Relays that have said that the peer is not there, and when. */
  readonly #absences = new Map<RelayClient, number>();
  relay: Relay | undefined;
  handover: Handover | undefined;

  constructor(own: Uint8Array, key: Uint8Array, onPacket: OnPacket) {
    this.key = key;
    this.onPacket = onPacket;
    this.#pair = pairOf(own, key);
  }

  /** The peer is not registered there. */
  markAbsent(client: RelayClient, order: number): void {
    this.#absences.delete(client);
    this.#absences.set(client, order);
  }

  /** The peer is registered there, or nobody knows any more. */
  unmark(client: RelayClient): void {
    if (this.#absences.size > 0) this.#absences.delete(client);
  }

  /**
   * The best of the relays now: connected, not about to end, and one where the peer has not been missing; if it has been
   * everywhere, where that was longest ago.
   */
  choose(relays: readonly Relay[]): Relay | undefined {
    const connected = relays.filter(({ client }) => client.isConnected);
    const staying = connected.filter(({ client }) => !client.isLeaving);
    const candidates = staying.length > 0 ? staying : connected;
    const absence = (relay: Relay): number => this.#absences.get(relay.client) ?? 0;
    const oldest = Math.min(...candidates.map(absence));
    const best = candidates.filter((relay) => absence(relay) === oldest);
    const [name] = ranked(
      this.#pair,
      best.map((relay) => relay.name),
    );
    return best.find((relay) => relay.name === name);
  }
}
