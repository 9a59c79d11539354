import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { formatAddress, parseAddress, specialRangeOf } from '@unbounded/ip';
import type { Logger } from '@unbounded/telemetry';
import type { ProtectedAddress } from '@unbounded/topology';
import type { StateFile } from '../state/state-file.ts';

/** The role of protected addresses that are its own. */
export const API_SERVER = 'an address of the API server';

/**
 * Where this node finds the API server: what its configured name resolves to, and where connections lead. Not every address
 * that the server has: one that other nodes use may well lie behind gateways. Kept in a file, so that an agent that starts
 * without an API server does not cut itself off from it.
 */
export interface ApiAddresses {
  list(): readonly ProtectedAddress[];
  /** Looks again; never rejects. */
  refresh(): Promise<void>;
}

/** How the addresses are learned. */
export interface ApiServer {
  /** Name or address of the configured server. */
  readonly host: string;
  /** Addresses to which there were connections, with when the last one was used (performance.now). */
  readonly peers: () => Iterable<readonly [address: string, usedMs: number]>;
}

/** Servers that went need no protection for ever: their addresses may be in a block of pods by now. */
const MOST_ADDRESSES = 32;
/** By a clock that nobody sets: a restarted agent counts anew. */
const FORGET_AFTER_MS = 24 * 3_600_000;

/** In canonical form; undefined for what is none, or is never routed. */
export const usableAddress = (text: string): string | undefined => {
  const bare = text.replace(/^\[(.*)\]$/, '$1').replace(/^::ffff:(?=\d+\.)/i, '');
  if (isIP(bare) === 0 || bare.includes('%')) return undefined;
  const address = parseAddress(bare);
  return specialRangeOf(address) === undefined ? formatAddress(address) : undefined;
};

const resolveAll = async (host: string): Promise<string[]> =>
  isIP(host) === 0 ? (await lookup(host, { all: true })).map(({ address }) => address) : [host];

export const createApiAddresses = (
  server: ApiServer,
  file: StateFile<string[]>,
  logger: Logger,
  now: () => number = () => performance.now(),
): ApiAddresses => {
  const name = server.host.replace(/^\[(.*)\]$/, '$1');
  /** When each was seen last, that one last. */
  let known: ReadonlyMap<string, number> = new Map(
    (file.read() ?? []).flatMap((text) => usableAddress(text) ?? []).map((address) => [address, now()]),
  );
  const keep = (entries: readonly (readonly [string, number])[]): void => {
    const before = known;
    known = new Map(entries.slice(-MOST_ADDRESSES));
    const isSame = known.size === before.size && [...known.keys()].every((address) => before.has(address));
    if (!isSame) file.write([...known.keys()]);
  };
  const add = (seen: Iterable<readonly [string, number]>): void => {
    const all = new Map(known);
    for (const [text, atMs] of seen) {
      const address = usableAddress(text);
      if (address !== undefined) all.set(address, Math.max(atMs, all.get(address) ?? -Infinity));
    }
    keep([...all].sort(([, a], [, b]) => a - b));
  };
  const learn = async (source: string, find: () => Promise<readonly string[]>): Promise<void> => {
    try {
      const found = await find();
      add(found.map((address) => [address, now()]));
    } catch (error) {
      logger.debug({ source, error: (error as Error).message }, 'the API server’s addresses are not known from here');
    }
  };
  /** Only while there is a connection: without one any of them may be the one that is left. */
  const forget = (peers: readonly (readonly [string, number])[]): void => {
    const sinceMs = now() - FORGET_AFTER_MS;
    if (peers.some(([, usedMs]) => usedMs > sinceMs)) keep([...known].filter(([, seenMs]) => seenMs > sinceMs));
  };
  const look = (): void => {
    const peers = [...server.peers()];
    add([...(isIP(name) === 0 ? [] : [[name, now()] as const]), ...peers]);
    forget(peers);
  };
  look();
  return {
    list() {
      look();
      return [...known.keys()].sort().map((address) => ({ address, role: API_SERVER }));
    },
    async refresh() {
      await learn('name', () => resolveAll(name));
    },
  };
};
