import { KEY_BYTES } from '@unbounded/relay-protocol';
import { silentLogger } from '@unbounded/telemetry';

import { type Resolve, systemResolve } from './address-watch.ts';
import { checkKeys, type ClientEvents, type ClientSettings, type ClientState, type RelayClient } from './client.ts';
import { systemClock } from './clock.ts';
import { Handover } from './handover.ts';
import { RelaySet, type RelayService } from './relay-set.ts';
import { type OnPacket, Route } from './route.ts';
import { newTallies, type Tallies } from './tallies.ts';

export interface PoolOptions extends ClientSettings {
  readonly services: readonly RelayService[];
  readonly resolve?: Resolve;
  /** What `state` says has changed. */
  readonly onChange?: () => void;
}

/** One peer, as it is reached over relays. */
export interface RelayPeer {
  /** False: there is no relay. The payload must not change afterwards. */
  send(payload: Uint8Array): boolean;
  /** The relay that it goes by; undefined: none. */
  readonly relay: string | undefined;
  /**
   * Goes by another relay from now on, if there is one: for who can tell that nothing comes back. A relay that is dead
   * without a word is found out only after a while, and one of the document does not say that the peer is not there.
   */
  tryAnother(): void;
  close(): void;
}

export interface PoolState {
  readonly relays: readonly ({ readonly name: string } & ClientState)[];
  readonly peers: number;
}

/** Where a proxy gets its peer from: a pool, or what stands for one. */
export interface PeerSource {
  /**
   * Takes packets from a peer, by its WireGuard public key of 32 bytes; a packet may be kept. @throws Error when the key is
   * none, or the peer is open already
   */
  open(key: Uint8Array, onPacket: OnPacket): RelayPeer;
}

/** Packets to and from peers over all relays there are; this node is registered with each of them. */
export class RelayPool implements PeerSource {
  readonly #settings: Required<Pick<PoolOptions, 'identity' | 'clock' | 'tallies' | 'onChange'>>;
  readonly #set: RelaySet;
  /** By key, as latin1. */
  readonly #routes = new Map<string, Route>();
  #absences = 0;
  #isClosed = false;

  constructor(options: PoolOptions) {
    const { clock = systemClock, random = Math.random, logger = silentLogger, tallies = newTallies() } = options;
    const { identity, services, resolve = systemResolve, onChange = () => {} } = options;
    checkKeys(options);
    this.#settings = { identity, clock, tallies, onChange };
    const settings = { ...options, clock, random, logger, tallies };
    this.#set = new RelaySet({ settings, resolve, events: this.#events });
    this.#set.setServices(services);
  }

  get tallies(): Tallies {
    return this.#settings.tallies;
  }

  get isConnected(): boolean {
    return this.#set.relays.some(({ client }) => client.isConnected);
  }

  get state(): PoolState {
    const relays = this.#set.relays.map(({ name, client }) => ({ name, ...client.state }));
    return { relays, peers: this.#routes.size };
  }

  open(key: Uint8Array, onPacket: OnPacket): RelayPeer {
    if (key.length !== KEY_BYTES) throw new Error(`peer key has ${key.length} bytes: must have ${KEY_BYTES}`);
    if (this.#isClosed) throw new Error('the relay pool is closed');
    const text = textOf(key);
    if (this.#routes.has(text)) throw new Error(`the peer ${Buffer.from(key).toString('base64')} is open already`);
    const route = new Route(this.#settings.identity.publicKey, new Uint8Array(key), onPacket);
    route.relay = route.choose(this.#set.relays);
    this.#routes.set(text, route);
    return {
      send: (payload) => this.#send(route, payload),
      get relay() {
        return route.relay?.name;
      },
      tryAnother: () => {
        if (route.relay !== undefined) this.#avoid(route, route.relay.client);
      },
      close: () => {
        if (this.#routes.get(text) === route) this.#routes.delete(text);
        route.relay = undefined;
      },
    };
  }

  /** The relays to use from now on; those that stay keep their connections. */
  setServices(services: readonly RelayService[]): void {
    this.#set.setServices(services);
  }

  close(): void {
    this.#isClosed = true;
    for (const route of this.#routes.values()) route.handover?.finish();
    for (const route of this.#routes.values()) route.relay = undefined;
    this.#routes.clear();
    this.#set.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #send(route: Route, payload: Uint8Array): boolean {
    const { relay, handover } = route;
    if (relay === undefined) {
      this.tallies.dropped.noRelay++;
      return false;
    }
    if (handover === undefined) return relay.client.send(route.key, payload);
    handover.add(payload.length, () => route.relay?.client.send(route.key, payload));
    return true;
  }

  readonly #events: ClientEvents = {
    onState: (client) => {
      if (this.#isClosed) return;
      if (!client.isConnected) this.#onLost(client);
      this.#findRelays();
      this.#settings.onChange();
    },
    onData: (client, key, payload) => {
      const route = this.#routes.get(key.toString('latin1'));
      if (route === undefined) {
        this.tallies.dropped.unknownPeer++;
        return;
      }
      route.unmark(client);
      route.onPacket(payload);
    },
    onPeerGone: (client, key) => {
      const route = this.#routes.get(textOf(key));
      if (route !== undefined) this.#avoid(route, client);
    },
  };

  #avoid(route: Route, client: RelayClient): void {
    route.markAbsent(client, ++this.#absences);
    // It may have been moved already: several PeerGone may come for packets that went there before.
    if (route.relay?.client === client) route.relay = route.choose(this.#set.relays);
  }

  #onLost(client: RelayClient): void {
    for (const route of this.#routes.values()) {
      route.unmark(client);
      if (route.relay?.client === client) route.relay = undefined;
    }
  }

  /** Moves peers to other relays while the one that leaves still delivers what it was given. */
  #onLeaving(client: RelayClient): void {
    const { relays } = this.#set;
    const moved: Route[] = [];
    for (const route of this.#routes.values()) {
      if (route.relay?.client !== client) continue;
      const next = route.choose(relays);
      if (next === route.relay) continue;
      route.relay = next;
      if (route.handover === undefined) moved.push(route);
    }
    if (moved.length === 0) return;
    const handover = new Handover(
      this.#settings.clock,
      (done) => client.barrier(done),
      () => {
        for (const route of moved) route.handover = undefined;
      },
    );
    if (!handover.isDone) for (const route of moved) route.handover = handover;
  }

  /** A relay for each peer that has none, and another one for those whose relay leaves. */
  #findRelays(): void {
    const { relays } = this.#set;
    for (const { client } of relays) if (client.isConnected && client.isLeaving) this.#onLeaving(client);
    for (const route of this.#routes.values()) route.relay ??= route.choose(relays);
  }
}

const textOf = (key: Uint8Array): string => Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('latin1');
