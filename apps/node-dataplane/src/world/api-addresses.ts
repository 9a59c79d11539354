import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { formatAddress, parseAddress, specialRangeOf } from '@unbounded/ip';
import type { Logger } from '@unbounded/telemetry';
import type { ProtectedAddress } from '@unbounded/topology';
import type { StateFile } from '../kernel/state-file.ts';

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
  /** Addresses to which there were connections. */
  readonly peers: () => Iterable<string>;
}

/** Servers that went long ago need no protection for ever. */
const MOST_ADDRESSES = 32;

/** In canonical form; undefined for what is none, or is never routed. */
export const usableAddress = (text: string): string | undefined => {
  const bare = text.replace(/^\[(.*)\]$/, '$1').replace(/^::ffff:(?=\d+\.)/i, '');
  if (isIP(bare) === 0 || bare.includes('%')) return undefined;
  const address = parseAddress(bare);
  return specialRangeOf(address) === undefined ? formatAddress(address) : undefined;
};

const resolveAll = async (host: string): Promise<string[]> =>
  isIP(host) === 0 ? (await lookup(host, { all: true })).map(({ address }) => address) : [host];

export const createApiAddresses = (server: ApiServer, file: StateFile<string[]>, logger: Logger): ApiAddresses => {
  const name = server.host.replace(/^\[(.*)\]$/, '$1');
  /** The last ones are those that were seen last. */
  let known: readonly string[] = (file.read() ?? []).flatMap((text) => usableAddress(text) ?? []);
  const add = (texts: Iterable<string>): void => {
    const seen = [...texts].flatMap((text) => usableAddress(text) ?? []);
    if (seen.every((address) => known.includes(address))) return;
    known = [...new Set([...known.filter((address) => !seen.includes(address)), ...seen])].slice(-MOST_ADDRESSES);
    file.write([...known]);
  };
  const learn = async (source: string, find: () => Promise<Iterable<string>>): Promise<void> => {
    try {
      add(await find());
    } catch (error) {
      logger.debug({ source, error: (error as Error).message }, 'the API server’s addresses are not known from here');
    }
  };
  if (isIP(name) !== 0) add([name]);
  return {
    list() {
      add(server.peers());
      return known.toSorted().map((address) => ({ address, role: 'an address of the API server' }));
    },
    async refresh() {
      await learn('name', () => resolveAll(name));
    },
  };
};
