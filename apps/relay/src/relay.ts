import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { SecureContext } from 'node:tls';

import { BlockPool, DATA_HEAD_BYTES, FORWARD_HEAD_BYTES } from '@unbounded/relay-protocol';
import type { Logger } from '@unbounded/telemetry';

import { Admission, type AdmissionLimits } from './admission.ts';
import type { AllowedKeys } from './allowed-keys.ts';
import type { ClientContext, ClientLimits } from './client-context.ts';
import { Client } from './client.ts';
import { type ConnectionContext, type Reader, takeConnection } from './connection.ts';
import { type AuthPolicy, Directory, seededHash } from './directory.ts';
import { createVerifier } from './handshake.ts';
import { Holds } from './holds.ts';
import { type HostAndPort, Links, type LinksOptions, newRelayId } from './links/links.ts';
import { Memory, ReadSlab } from './memory.ts';
import type { KeyPair } from './platform-crypto.ts';
import { Round } from './round.ts';
import { newTallies, type Tallies } from './tallies.ts';

export interface RelayOptions extends ClientLimits, AdmissionLimits {
  readonly listen: HostAndPort;
  readonly auth: AuthPolicy;
  readonly queueBytes: number;
  readonly memoryBytes: number;
  readonly staticKey: KeyPair | undefined;
  /** Which keys may be registered; undefined: any. */
  readonly allowed: AllowedKeys | undefined;
  readonly secureContext: () => SecureContext | undefined;
  readonly isProxy: (address: string) => boolean;
  readonly links: Omit<LinksOptions, 'logger'> | undefined;
  readonly queueAge: (ms: number) => void;
  readonly logger: Logger;
}

export interface RelayState {
  readonly tallies: Tallies;
  readonly connections: number;
  /** Of these without a key. */
  readonly pending: number;
  /** Undefined: any key may be registered. */
  readonly allowedKeys: number | undefined;
  readonly isListStale: boolean;
  readonly registered: number;
  readonly heldBytes: number;
  readonly links: number;
}

const SWEEP_MS = 1000;
/** Bytes that wait for a link: it carries the traffic of all clients of a replica. */
const LINK_QUEUE_BYTES = 4 * 1024 * 1024;
const BACKLOG = 4096;
/** Steps of a drain: clients that cannot be asked to leave are sent off a few at a time. */
const DRAIN_STEP_MS = 100;

/** A relay: it listens from `start` on, and `drain` ends it. */
export class Relay {
  readonly #options: RelayOptions;
  readonly #context: ConnectionContext;
  readonly #links: Links | undefined;
  readonly #server;
  readonly #readers = new Set<Reader>();
  #registered = 0;
  #sweep: NodeJS.Timeout | undefined;
  #checking: NodeJS.Immediate | undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
    const tallies = newTallies();
    const memory = new Memory(options.memoryBytes);
    const slab = new ReadSlab();
    const round = new Round(slab, memory);
    const partials = new BlockPool();
    const admission = new Admission(options);
    const directory = new Directory(options.auth, seededHash(randomInt(2 ** 31)), {
      registered: (entry, isNew) => {
        if (isNew) this.#registered++;
        this.#links?.announce(entry);
      },
      left: (entry) => {
        this.#registered--;
        this.#links?.announce(entry);
      },
    });
    const queues = { memory, tallies, queueAge: options.queueAge };
    const clients: ClientContext = {
      policy: options.auth,
      limits: options,
      admission,
      allowed: options.allowed,
      slab,
      partials,
      round,
      outboxes: { ...queues, queueBytes: options.queueBytes, headBytes: DATA_HEAD_BYTES },
      directory,
      verifier: createVerifier({ staticKey: options.staticKey, expiresInMs: options.registerDeadlineMs }),
      holds: new Holds(tallies),
      tallies,
      onEnded: (client) => {
        this.#readers.delete(client);
      },
      nextSession: 1n,
    };
    const { secureContext, isProxy } = options;
    this.#context = { clients, secureContext, isProxy, readers: this.#readers };
    if (options.links) {
      const outboxes = { ...queues, queueBytes: LINK_QUEUE_BYTES, headBytes: FORWARD_HEAD_BYTES };
      const context = { id: newRelayId(), slab, partials, round, directory, tallies, outboxes };
      this.#links = new Links(context, memory, { ...options.links, logger: options.logger });
    }
    // Nothing is read before the connection has moved to a socket of ours.
    this.#server = createServer({ pauseOnConnect: true, noDelay: true, keepAlive: true }, (accepted) =>
      takeConnection(accepted, this.#context),
    );
  }

  /** The TCP port that was taken. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get linkPort(): number | undefined {
    return this.#links?.port;
  }

  get state(): RelayState {
    const { clients } = this.#context;
    const { allowed } = this.#options;
    return {
      tallies: clients.tallies,
      connections: clients.admission.open,
      pending: clients.admission.pending,
      allowedKeys: allowed?.size,
      isListStale: allowed?.isStale ?? false,
      registered: this.#registered,
      heldBytes: clients.outboxes.memory.held,
      links: this.#links?.reachable ?? 0,
    };
  }

  async start(): Promise<void> {
    const { host, port } = this.#options.listen;
    this.#server.listen({ port, backlog: BACKLOG, ...(host === '' ? {} : { host }) });
    await once(this.#server, 'listening');
    // One connection that cannot be accepted (no descriptor left) is no reason to end.
    this.#server.on('error', (error) => this.#options.logger.error({ err: error }, 'cannot accept'));
    await this.#links?.start();
    this.#options.allowed?.follow(() => this.#endUnallowed());
    this.#sweep = setInterval(() => {
      // Behind what waits in the sockets: clients of a process that was held up have not been silent.
      this.#checking = setImmediate(() => this.#check());
    }, SWEEP_MS).unref();
  }

  /**
   * Asks clients to go elsewhere and forwards until they have, or the time is over. Those that understand Drain get a moment
   * of their own each, in the first half; the others are cut at moments spread over the whole time.
   */
  async drain(withinMs: number): Promise<void> {
    this.#server.close();
    const end = performance.now() + withinMs;
    const leaving: { readonly client: Client; readonly at: number }[] = [];
    for (const reader of this.#readers) {
      if (!(reader instanceof Client)) continue;
      const isAsked = reader.askToLeave(Math.floor((Math.random() * withinMs) / 2), withinMs);
      leaving.push({ client: reader, at: isAsked ? end : end - Math.random() * withinMs });
    }
    while (this.#readers.size > 0 && performance.now() < end) {
      const now = performance.now();
      for (const { client, at } of leaving) if (now >= at) client.end('drained');
      await new Promise((resolve) => setTimeout(resolve, Math.min(DRAIN_STEP_MS, withinMs)));
    }
    this.stop();
  }

  /** Ends at once. */
  stop(): void {
    clearInterval(this.#sweep);
    clearImmediate(this.#checking);
    this.#options.allowed?.stop();
    this.#server.close();
    for (const reader of this.#readers) reader.end('drained');
    this.#links?.stop();
  }

  /** The list has changed: who is not on it any more has to go. */
  #endUnallowed(): void {
    let ended = 0;
    for (const reader of this.#readers) if (reader instanceof Client && reader.endUnlessAllowed()) ended++;
    const { allowed, logger } = this.#options;
    logger.info({ keys: allowed?.size, ended }, 'the list of allowed keys has changed');
  }

  #check(): void {
    const now = performance.now();
    for (const reader of this.#readers) reader.check(now);
    this.#context.clients.admission.sweep(now);
    this.#links?.check(now);
  }
}
