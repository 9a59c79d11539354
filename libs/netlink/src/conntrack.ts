import {
  type Answers,
  CONNTRACK_MESSAGE,
  type Connection,
  createAnswersDecoder,
  decodeConnection,
  encodeConnectionKey,
  encodeConnections,
  encodeConnectionsAnsweredAt,
  encodeConnectionsFrom,
} from './conntrack.codec.ts';
import { isAbsent } from './netlink-error.ts';
import { NetlinkSocket, PROTOCOL } from './netlink-socket.ts';

/** The connections that the kernel tracks. */
export interface Conntrack extends AsyncDisposable {
  /** Those that were opened from any of these addresses. @throws NetlinkError, NetlinkDecodeError */
  listFrom(sources: readonly string[]): Promise<Connection[]>;
  /**
   * How many connections are answered at these addresses, by who answers: each of the same answers has a port of the address. Takes some
   * milliseconds of every thousand connections of the node. @throws NetlinkError, NetlinkDecodeError
   */
  countAnsweredAt(addresses: readonly string[]): Promise<ReadonlyMap<Answers, number>>;
  /** One that is gone already is fine. @throws NetlinkError */
  delete(connection: Pick<Connection, 'family' | 'key'>): Promise<void>;
  close(): void;
}

/** For so many IPv4 addresses the kernel is asked about each; of more, about all connections at once. */
const MAX_FILTERED = 4;

const requestsFor = (addresses: readonly string[], encodeOne: (address: string) => Uint8Array): Uint8Array[] => {
  const v4 = addresses.filter((address) => !address.includes(':'));
  return [
    ...(v4.length > MAX_FILTERED ? [encodeConnections(4)] : v4.map(encodeOne)),
    ...(addresses.length > v4.length ? [encodeConnections(6)] : []),
  ];
};

export const createConntrack = ({ netnsFd }: { readonly netnsFd?: number } = {}): Conntrack => {
  const socket = new NetlinkSocket({ protocol: PROTOCOL.netfilter, ...(netnsFd === undefined ? {} : { netnsFd }) });
  const dump = <T>(body: Uint8Array, decode: (body: Uint8Array) => T | undefined): Promise<T[]> =>
    socket.dump({ type: CONNTRACK_MESSAGE.get, flags: 0, body, what: 'list connections' }, (message) =>
      message.type === CONNTRACK_MESSAGE.new ? decode(message.body) : undefined,
    );
  return {
    async listFrom(sources) {
      const wanted = new Set(sources);
      const found: Connection[] = [];
      for (const body of requestsFor(sources, encodeConnectionsFrom))
        for (const connection of await dump(body, decodeConnection))
          if (wanted.has(connection.original.source)) found.push(connection);
      return found;
    },
    async countAnsweredAt(addresses) {
      const wanted = new Set(addresses);
      const decode = createAnswersDecoder((address) => wanted.has(address));
      const counts = new Map<Answers, number>();
      for (const body of requestsFor(addresses, encodeConnectionsAnsweredAt))
        for (const answers of await dump(body, decode)) counts.set(answers, (counts.get(answers) ?? 0) + 1);
      return counts;
    },
    async delete(connection) {
      try {
        const body = encodeConnectionKey(connection);
        await socket.request({ type: CONNTRACK_MESSAGE.delete, flags: 0, body, what: 'delete a connection' });
      } catch (error) {
        if (!isAbsent(error)) throw error;
      }
    },
    close: () => socket.close(),
    [Symbol.asyncDispose]: () => socket[Symbol.asyncDispose](),
  };
};
