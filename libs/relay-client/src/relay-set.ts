import { isIP } from 'node:net';

import { type Resolve, watchAddresses } from './address-watch.ts';
import { type ClientEvents, type ClientSettings, RelayClient } from './client.ts';
import type { Timer } from './clock.ts';
import { type Endpoint, formatEndpoint } from './endpoint.ts';
import type { Lookout } from './lookout.ts';

/** A relay that is not wanted any more is read for so long, until its other clients have heard that it is going. */
const RETIRED_MS = 15_000;

/**
 * Relays that work together. One way whose host is a name may stand for several replicas (see `relaysOf`); several ways
 * lead to the same relays and are tried one after the other.
 */
export interface RelayService {
  /** What tells it from others of the pool; other ways under the same name replace those before. */
  readonly name: string;
  readonly ways: readonly Endpoint[];
  /** A balancer stands before the relays: one connection, whatever addresses its name has. */
  readonly isBalanced?: boolean;
}

/** A relay of the pool: its client and the name by which peers prefer it. */
export interface Relay {
  readonly name: string;
  readonly client: RelayClient;
}

interface Member extends Relay {
  /** Services that it belongs to. */
  readonly services: Set<string>;
  closing: Timer | undefined;
}

interface Watch {
  readonly of: string;
  readonly watch: Lookout<Endpoint>;
}

export interface RelaySetOptions {
  readonly settings: ClientSettings & Required<Pick<ClientSettings, 'clock' | 'random' | 'logger'>>;
  readonly resolve: Resolve;
  /** A client that is removed is not connected any more and says so a last time. */
  readonly events: ClientEvents;
}

/** Which relays there are: follows the services' names, and keeps a client for each relay. */
export class RelaySet {
  readonly #options: RelaySetOptions;
  readonly #members = new Map<string, Member>();
  readonly #watches = new Map<string, Watch>();
  #isClosed = false;

  constructor(options: RelaySetOptions) {
    this.#options = options;
  }

  get relays(): readonly Relay[] {
    return [...this.#members.values()];
  }

  /** The services to use from now on; relays that stay keep their connections. */
  setServices(services: readonly RelayService[]): void {
    if (this.#isClosed) return;
    const names = new Set(services.map(({ name }) => name));
    for (const name of this.#watches.keys()) if (!names.has(name)) this.#stopWatch(name);
    const known = new Set([...this.#members.values()].flatMap((member) => [...member.services]));
    for (const name of known) if (!names.has(name)) this.#setRelays(name, new Map());
    for (const service of services) this.#setService(service);
  }

  close(): void {
    this.#isClosed = true;
    for (const name of this.#watches.keys()) this.#stopWatch(name);
    for (const { client, closing } of this.#members.values()) {
      closing?.cancel();
      client.close();
    }
    this.#members.clear();
  }

  #setService({ name, ways, isBalanced = false }: RelayService): void {
    const [way] = ways;
    const isName = way !== undefined && !isBalanced && ways.length === 1 && isIP(way.host) === 0;
    const of = isName ? formatEndpoint(way) : undefined;
    if (of !== undefined && this.#watches.get(name)?.of === of) return;
    this.#stopWatch(name);
    if (of !== undefined) this.#watch(name, way!, of);
    else this.#setRelays(name, way === undefined ? new Map() : new Map([[name, ways]]));
  }

  #watch(name: string, endpoint: Endpoint, of: string): void {
    const { settings, resolve } = this.#options;
    const { clock, random, logger } = settings;
    const onRelays = (relays: readonly Endpoint[]): void =>
      this.#setRelays(name, new Map(relays.map((relay) => [formatEndpoint(relay), [relay]])));
    const watch = watchAddresses({ endpoint, resolve, clock, random, logger, onRelays });
    this.#watches.set(name, { of, watch });
    watch.start();
  }

  #stopWatch(name: string): void {
    this.#watches.get(name)?.watch.stop();
    this.#watches.delete(name);
  }

  /** The relays of a service, by name. */
  #setRelays(service: string, relays: ReadonlyMap<string, readonly Endpoint[]>): void {
    for (const [name, ways] of relays) this.#add(name, service, ways);
    for (const member of [...this.#members.values()])
      if (!relays.has(member.name) && member.services.delete(service) && member.services.size === 0)
        this.#retire(member);
  }

  #add(name: string, service: string, ways: readonly Endpoint[]): void {
    const { settings, events } = this.#options;
    const member = this.#members.get(name);
    if (member === undefined) {
      const client = new RelayClient({ ...settings, ways, events });
      this.#members.set(name, { name, client, services: new Set([service]), closing: undefined });
      return client.start();
    }
    member.services.add(service);
    member.client.setWays(ways);
    member.closing?.cancel();
    member.closing = undefined;
    member.client.revive();
  }

  #retire(member: Member): void {
    const { clock } = this.#options.settings;
    member.client.retire();
    member.closing?.cancel();
    if (member.client.isConnected) member.closing = clock.after(RETIRED_MS, () => this.#remove(member));
    else this.#remove(member);
  }

  #remove(member: Member): void {
    const { settings, events } = this.#options;
    const others = this.#members.values().filter((other) => other !== member);
    // A relay that works is better than none, whatever the name says.
    if (member.client.isConnected && !others.some(({ client }) => client.isConnected)) {
      member.closing = settings.clock.after(RETIRED_MS, () => this.#remove(member));
      return;
    }
    this.#members.delete(member.name);
    member.client.close();
    events.onState(member.client);
  }
}
