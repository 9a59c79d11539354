import { randomBytes } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type TlsOptions, type TLSSocket } from 'node:tls';

import type { LinkMessage, Presence } from '@unbounded/relay-protocol';
import { limitConnections } from '@unbounded/host/connection-limit';
import type { Logger } from '@unbounded/telemetry';

import type { Client } from '../client.ts';
import type { Entry } from '../directory.ts';
import type { Memory } from '../memory.ts';
import { Link, type LinkContext } from './link.ts';
import { Replica } from './replica.ts';

export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

export interface LinksOptions {
  readonly listen: HostAndPort;
  /** Where other replicas are; a name stands for all its addresses, as a headless Service gives them. */
  readonly peers: readonly HostAndPort[];
  /** Both ends have it: 32 bytes or more. A function, because it may be exchanged. */
  readonly secret: () => Buffer;
  /** How often names are looked up and ended links dialled again. */
  readonly everyMs: number;
  readonly logger: Logger;
}

/** TLS 1.2 with a pre-shared key (RFC 8442): mutual authentication without certificates, and forward secrecy. */
const TLS = { ciphers: 'ECDHE-PSK-CHACHA20-POLY1305', minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const;
const PSK_IDENTITY = 'unbounded-relay';
const HANDSHAKE_MS = 5000;
const REFUSALS_EVERY_MS = 10_000;
/** Connections that have not proven that they have the secret; replicas need a moment each. */
const MOST_PENDING = 64;
/** Links by others; each replica dials one. */
const MOST_INBOUND = 256;

interface Dialled {
  readonly link: Link;
  replica: Replica | undefined;
}

/** A link that another replica dialled, and the keys that it announced there. */
interface Inbound {
  replica: Replica | undefined;
  readonly entries: Set<Entry>;
}

/**
 * The links of a relay with its other replicas, so that a client of one reaches those of all. Every replica dials every
 * other: over the link that it dialled it says who is registered with it and sends packets, over those dialled by others it
 * hears the same of them. So each pair has two links, and neither end depends on the other's view.
 */
export class Links {
  readonly #context: LinkContext;
  readonly #memory: Memory;
  readonly #options: LinksOptions;
  readonly #replicas = new Map<string, Replica>();
  readonly #dialled = new Map<string, Dialled>();
  readonly #inbound = new Map<Link, Inbound>();
  readonly #dialling = new Set<string>();
  /** Which replica answers at an address. */
  readonly #known = new Map<string, string>();
  readonly #local = new Set<Entry>();
  readonly #changed = new Set<Entry>();
  readonly #server;
  readonly #letIn: ReturnType<typeof limitConnections>;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;
  #refusals = 0;
  #refusedAt = Number.NEGATIVE_INFINITY;

  constructor(context: LinkContext, memory: Memory, options: LinksOptions) {
    this.#context = context;
    this.#memory = memory;
    this.#options = options;
    const tls: TlsOptions = {
      ...TLS,
      handshakeTimeout: HANDSHAKE_MS,
      pskCallback: (_socket, identity) => (identity === PSK_IDENTITY ? options.secret() : null),
    };
    this.#server = createServer(tls, (socket) => this.#accept(socket));
    const { tallies } = context;
    const onCut = (): void => void tallies.refused.links++;
    this.#letIn = limitConnections(this.#server, { most: MOST_PENDING, deadlineMs: HANDSHAKE_MS, onCut });
    this.#server.on('tlsClientError', (error, socket) => {
      this.#onRefused(socket.remoteAddress, error.message);
      socket.destroy();
    });
  }

  /** Anybody may knock here: that fills no log. */
  #onRefused(address: string | undefined, reason: string): void {
    const now = performance.now();
    this.#refusals++;
    if (now - this.#refusedAt < REFUSALS_EVERY_MS) return;
    this.#options.logger.warn({ address, reason, count: this.#refusals }, 'links were refused');
    this.#refusedAt = now;
    this.#refusals = 0;
  }

  /** Links that this replica has dialled and that are up. */
  get reachable(): number {
    return this.#replicas
      .values()
      .filter(({ isReachable }) => isReachable)
      .toArray().length;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async start(): Promise<void> {
    const { listen, everyMs } = this.#options;
    this.#server.listen(listen.port, listen.host === '' ? undefined : listen.host);
    await once(this.#server, 'listening');
    void this.#discover();
    this.#timer = setInterval(() => void this.#discover(), everyMs).unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
    this.#server.close();
    for (const { link } of this.#dialled.values()) link.end();
    for (const link of this.#inbound.keys()) link.end();
  }

  check(now: number): void {
    for (const { link } of this.#dialled.values()) link.check(now);
    for (const link of this.#inbound.keys()) link.check(now);
  }

  /** A client here has got or left a key: said to all replicas, with others of the same moment. */
  announce(entry: Entry): void {
    if (entry.client === undefined) this.#local.delete(entry);
    else this.#local.add(entry);
    if (this.#changed.size === 0) setImmediate(() => this.#announceChanged());
    this.#changed.add(entry);
  }

  #announceChanged(): void {
    // A link that is not up yet announces all when it is.
    for (const { link, replica } of this.#dialled.values()) if (replica !== undefined) link.announce(this.#changed);
    this.#changed.clear();
  }

  #replica(id: Uint8Array): Replica {
    const name = Buffer.from(id).toString('hex');
    let replica = this.#replicas.get(name);
    if (replica === undefined) {
      replica = new Replica(name, this.#memory, this.#context.round);
      this.#replicas.set(name, replica);
    }
    return replica;
  }

  #accept(socket: TLSSocket): void {
    if (this.#inbound.size >= MOST_INBOUND) return void socket.destroy();
    this.#letIn(socket);
    const inbound: Inbound = { replica: undefined, entries: new Set() };
    const link: Link = new Link(this.#context, socket, {
      onMessage: (message) => this.#onInbound(link, inbound, message),
      onClosed: () => this.#onInboundClosed(link, inbound),
    });
    this.#inbound.set(link, inbound);
  }

  #onInbound(link: Link, inbound: Inbound, message: LinkMessage): void {
    const { replica } = inbound;
    if (message.kind === 'identity') inbound.replica ??= this.#replica(message.id);
    else if (replica === undefined) link.end();
    else if (message.kind === 'present' || message.kind === 'gone') {
      if (message.kind === 'present') for (const peer of message.peers) this.#addClient(inbound, replica, peer);
      else for (const key of message.keys) this.#removeClient(inbound, replica, key);
      this.#endFormer(link, replica);
    }
  }

  /**
   * A replica announces over one link: the one that it chose of those that it dialled at once, by several addresses, or
   * a new one, whose predecessor was not seen to have ended. A link that it only dialled ends none: it may end that itself.
   */
  #endFormer(link: Link, replica: Replica): void {
    for (const [other] of this.#linksOf(replica)) if (other !== link) other.end();
  }

  /** Those by which it is heard. */
  #linksOf(replica: Replica): IteratorObject<[Link, Inbound]> {
    return this.#inbound.entries().filter(([, inbound]) => inbound.replica === replica);
  }

  #addClient({ entries }: Inbound, replica: Replica, { key, proven }: Presence): void {
    const { directory } = this.#context;
    const entry = directory.findOrAdd(viewOf(key), 0);
    entries.add(entry);
    const outranked: Client | undefined = directory.addReplica(entry, replica, proven);
    outranked?.outrank();
  }

  #removeClient({ entries }: Inbound, replica: Replica, key: Uint8Array): void {
    const entry = this.#context.directory.find(viewOf(key), 0);
    if (entry === undefined) return;
    entries.delete(entry);
    this.#context.directory.removeReplica(entry, replica);
  }

  #onInboundClosed(link: Link, { replica, entries }: Inbound): void {
    this.#inbound.delete(link);
    if (replica === undefined) return;
    const others = this.#linksOf(replica).toArray();
    for (const entry of entries)
      if (!others.some(([, inbound]) => inbound.entries.has(entry)))
        this.#context.directory.removeReplica(entry, replica);
    this.#forgetReplica(replica);
  }

  #forgetReplica(replica: Replica): void {
    const isHeard = this.#linksOf(replica).some(() => true);
    if (!isHeard && !replica.isReachable) this.#replicas.delete(replica.id);
  }

  /** Dials what is not dialled yet; an address that does not resolve now keeps its link. */
  async #discover(): Promise<void> {
    const found = await Promise.all(this.#options.peers.map(addressesOf));
    for (const address of new Set(found.flat()))
      if (!this.#isStopped && !this.#isLinked(address) && !this.#dialling.has(address)) this.#dial(address);
  }

  /** Also by another address of the same replica, or because it is this one: a Service's name stands for ourselves, too. */
  #isLinked(address: string): boolean {
    const known = this.#known.get(address);
    if (known === undefined) return this.#dialled.has(address);
    return known === Buffer.from(this.#context.id).toString('hex') || (this.#replicas.get(known)?.isReachable ?? false);
  }

  #dial(address: string): void {
    const { secret, logger } = this.#options;
    const { host, port } = JSON.parse(address) as HostAndPort;
    this.#dialling.add(address);
    const socket = connect({
      host,
      port,
      ...TLS,
      pskCallback: () => ({ psk: secret(), identity: PSK_IDENTITY }),
      // The key says who it is; there is no certificate that could name a host.
      checkServerIdentity: () => undefined,
    });
    const timer = setTimeout(() => socket.destroy(new Error(`no link within ${HANDSHAKE_MS} ms`)), HANDSHAKE_MS);
    socket.once('close', () => {
      clearTimeout(timer);
      this.#dialling.delete(address);
    });
    socket.on('error', (error) => logger.warn({ host, port, reason: error.message }, 'no link to a replica'));
    socket.once('secureConnect', () => {
      clearTimeout(timer);
      socket.setNoDelay(true);
      this.#onDialled(address, socket);
    });
  }

  #onDialled(address: string, socket: TLSSocket): void {
    const dialled: Dialled = {
      replica: undefined,
      link: new Link(this.#context, socket, {
        onMessage: (message) => {
          if (message.kind === 'identity' && dialled.replica === undefined)
            this.#onIdentity(address, dialled, message.id);
        },
        onClosed: () => {
          this.#dialled.delete(address);
          const { replica } = dialled;
          if (replica === undefined) return;
          replica.outbox = undefined;
          this.#options.logger.info({ address, replica: replica.id }, 'link down');
          this.#forgetReplica(replica);
        },
      }),
    };
    this.#dialled.set(address, dialled);
  }

  #onIdentity(address: string, dialled: Dialled, id: Uint8Array): void {
    const { logger } = this.#options;
    this.#known.set(address, Buffer.from(id).toString('hex'));
    if (Buffer.compare(id, this.#context.id) === 0) return dialled.link.end();
    const replica = this.#replica(id);
    if (replica.isReachable) return dialled.link.end(); // one of its other addresses was first
    dialled.replica = replica;
    replica.outbox = dialled.link.outbox;
    dialled.link.announce(this.#local);
    logger.info({ address, replica: replica.id }, 'link up');
  }
}

export const newRelayId = (): Buffer => randomBytes(16);

const viewOf = (key: Uint8Array): DataView => new DataView(key.buffer, key.byteOffset, key.length);

/** Every address of the name, as text that serves as key. */
const addressesOf = async ({ host, port }: HostAndPort): Promise<string[]> => {
  try {
    return (await lookup(host, { all: true })).map(({ address }) => JSON.stringify({ host: address, port }));
  } catch {
    return []; // not there now: tried again
  }
};
