import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { MESH_WIREGUARD_PORT } from '@unbounded/crds/names';
import type { RelayIdentity, RelayState, RelayTallies, RelayUnit } from '@unbounded/keeper-protocol';
import {
  exchangeWith,
  newProxyTallies,
  newTallies,
  RelayPool,
  type RelayService,
  type RelayTrust,
  type Resolve,
  settingsOf,
  systemResolve,
  trustDigest,
  UdpProxy,
} from '@unbounded/relay-client';
import type { Logger } from '@unbounded/telemetry';
import { privateKeyObject, publicKeyBytes } from '@unbounded/wireguard/x25519';

/** A name may stand for so many relays. */
const MOST_ADDRESSES = 32;
const resolve: Resolve = async (name) => (await systemResolve(name)).slice(0, MOST_ADDRESSES);

/** Of what is told of a relay that is away. */
const MOST_PROBLEM = 300;
/** Above are the ports of WireGuard interfaces, which cannot come up where a proxy has theirs. */
const suits = (port: number): boolean => port < MESH_WIREGUARD_PORT;
/** A port that is taken is asked for again a few times: its last owner may be ending. */
const TRIES = 10;
const AGAIN_MS = 100;

interface OpenProxy {
  readonly wireGuardPort: number;
  readonly proxy: UdpProxy;
}

/** One of the node's own keys: registered with every relay, and a proxy for each peer that knows it. */
interface OpenIdentity {
  readonly pool: RelayPool;
  readonly proxies: Map<string, OpenProxy>;
}

export interface RelayProxiesOptions {
  readonly logger: Logger;
  /** What an earlier process had: its ports are taken again. */
  readonly before: RelayState;
  /** `state` may be another. */
  readonly onChange: () => void;
}

/** @throws Error when the file does not hold that key; the message has neither */
const ownKey = ({ publicKey, privateKeyFile }: RelayIdentity): Buffer => {
  const privateKey = Buffer.from(readFileSync(privateKeyFile, 'utf8').trim(), 'base64');
  const found = publicKeyBytes(privateKeyObject(privateKey)).toString('base64');
  if (found !== publicKey) throw new Error(`${privateKeyFile} is not the private key of ${publicKey}`);
  return privateKey;
};

const pairOf = (own: string, peer: string): string => `${own} ${peer}`;
const isTaken = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EADDRINUSE';

/** The relay's proxies as a unit says, and as the next one says. */
export class RelayProxies {
  readonly #options: RelayProxiesOptions;
  readonly #identities = new Map<string, OpenIdentity>();
  /** By own and peer's key. */
  readonly #ports: Map<string, number>;
  /** Of all keys and peers, also of those that are gone. */
  #trust: RelayTrust = {};
  #security: string | undefined;
  readonly #counted = { relays: newTallies(), proxies: newProxyTallies() };

  constructor(options: RelayProxiesOptions) {
    this.#options = options;
    this.#ports = new Map(options.before.proxies.map(({ own, peer, port }) => [pairOf(own, peer), port]));
  }

  get state(): RelayState {
    const relays = new Map<string, RelayState['relays'][number]>();
    for (const { pool } of this.#identities.values())
      for (const { name, phase, lastEnd } of pool.state.relays) {
        const connected = phase === 'connected' || phase === 'leaving' || (relays.get(name)?.connected ?? false);
        const problem = lastEnd?.message.slice(0, MOST_PROBLEM);
        relays.set(name, { name, connected, ...(connected || problem === undefined ? {} : { problem }) });
      }
    const trust = trustDigest(this.#trust);
    const proxies = [...this.#identities].flatMap(([own, identity]) =>
      [...identity.proxies].map(([peer, { wireGuardPort, proxy }]) => ({ own, peer, wireGuardPort, port: proxy.port })),
    );
    return { proxies, relays: [...relays.values()], ...(trust === undefined ? {} : { trust }) };
  }

  get tallies(): RelayTallies {
    const { sentFrames, sentBytes, receivedFrames, receivedBytes, connections, dropped } = this.#counted.relays;
    const { dropped: noWireGuard, rebinds } = this.#counted.proxies;
    const frames = { sent: sentFrames, received: receivedFrames };
    const bytes = { sent: sentBytes, received: receivedBytes };
    return { frames, bytes, connections, rebinds, dropped: { ...dropped, noWireGuard } };
  }

  /** One call at a time. What cannot be had is told, and the rest is done. @returns whether everything is as it says */
  async apply(unit: RelayUnit): Promise<boolean> {
    const { services, identities } = unit;
    this.#secure(unit);
    const wanted = new Set(identities.map(({ publicKey }) => publicKey));
    for (const own of [...this.#identities.keys()]) if (!wanted.has(own)) this.#closeIdentity(own);
    const done = await Promise.all(identities.map((identity) => this.#applyIdentity(identity, services)));
    const pairs = new Set(
      identities.flatMap(({ publicKey, peers }) => peers.map((peer) => pairOf(publicKey, peer.publicKey))),
    );
    for (const pair of this.#ports.keys()) if (!pairs.has(pair)) this.#ports.delete(pair);
    this.#options.onChange();
    return done.every(Boolean);
  }

  close(): void {
    for (const own of [...this.#identities.keys()]) this.#closeIdentity(own);
  }

  /** What was connected in another way of knowing relays is not trusted any more: connections are made anew. */
  #secure({ trust = {}, services }: RelayUnit): void {
    const ways = services.flatMap((service) => service.ways.map(({ isTls, serverName }) => `${isTls} ${serverName}`));
    const security = JSON.stringify([trust, [...new Set(ways)].toSorted()]);
    const isOther = this.#security !== undefined && this.#security !== security;
    this.#security = security;
    this.#trust = trust;
    if (isOther) for (const own of [...this.#identities.keys()]) this.#closeIdentity(own);
  }

  async #applyIdentity(identity: RelayIdentity, services: readonly RelayService[]): Promise<boolean> {
    const { publicKey: own, peers } = identity;
    const open = this.#open(identity, services);
    if (!open) return false;
    open.pool.setServices(services);
    const wanted = new Map(peers.map((peer) => [peer.publicKey, peer.wireGuardPort]));
    for (const [peer, { proxy, wireGuardPort }] of open.proxies) {
      if (wanted.get(peer) === wireGuardPort) continue;
      proxy.close();
      open.proxies.delete(peer);
    }
    const missing = [...wanted].filter(([peer]) => !open.proxies.has(peer));
    const opened = await Promise.all(missing.map(([peer, wireGuardPort]) => this.#openProxy(own, peer, wireGuardPort)));
    return opened.every(Boolean);
  }

  /** Keeps a key that it has: during an exchange of keys the file of an older one may be gone already. */
  #open(identity: RelayIdentity, services: readonly RelayService[]): OpenIdentity | undefined {
    const { logger, onChange } = this.#options;
    const { publicKey } = identity;
    const known = this.#identities.get(publicKey);
    if (known) return known;
    try {
      const keys = { publicKey: Buffer.from(publicKey, 'base64'), exchange: exchangeWith(ownKey(identity)) };
      const tallies = this.#counted.relays;
      const pool = new RelayPool({
        ...settingsOf(this.#trust),
        identity: keys,
        services,
        resolve,
        tallies,
        logger,
        onChange,
      });
      const open = { pool, proxies: new Map<string, OpenProxy>() };
      this.#identities.set(publicKey, open);
      return open;
    } catch (error) {
      logger.error({ identity: publicKey, error: (error as Error).message }, 'no relay with this key');
      return undefined;
    }
  }

  async #openProxy(own: string, peer: string, wireGuardPort: number): Promise<boolean> {
    const { logger } = this.#options;
    const { pool, proxies } = this.#identities.get(own)!;
    const tallies = this.#counted.proxies;
    const options = { relays: pool, key: Buffer.from(peer, 'base64'), wireGuardPort, tallies, logger };
    const port = this.#ports.get(pairOf(own, peer));
    try {
      const proxy = await this.#bind(options, port);
      if (port !== undefined && proxy.port !== port) logger.warn({ port }, 'proxy port is in use; using another');
      this.#ports.set(pairOf(own, peer), proxy.port);
      proxies.set(peer, { wireGuardPort, proxy });
      return true;
    } catch (error) {
      logger.error({ peer, error: (error as Error).message }, 'no proxy for this peer');
      return false;
    }
  }

  /** On the port that it had, if that can be had, else on a free one. */
  async #bind(options: Parameters<typeof UdpProxy.open>[0], port: number | undefined): Promise<UdpProxy> {
    for (let tries = 0; port !== undefined && tries < TRIES; tries++) {
      try {
        return await UdpProxy.open({ ...options, port });
      } catch (error) {
        if (!isTaken(error)) throw error;
        await delay(AGAIN_MS);
      }
    }
    return await UdpProxy.open({ ...options, suits });
  }

  #closeIdentity(own: string): void {
    const open = this.#identities.get(own);
    this.#identities.delete(own);
    for (const { proxy } of open?.proxies.values() ?? []) proxy.close();
    open?.pool.close();
  }
}
