import {
  CONNTRACK_MESSAGE,
  type Connection,
  decodeConnection,
  encodeConnectionKey,
  encodeConnections,
  encodeConnectionsFrom,
} from './conntrack.codec.ts';
import { isAbsent } from './netlink-error.ts';
import { NetlinkSocket, PROTOCOL } from './netlink-socket.ts';

/** The connections that the kernel tracks. */
export interface Conntrack extends AsyncDisposable {
  /** Those that were opened from any of these addresses. @throws NetlinkError, NetlinkDecodeError */
  listFrom(sources: readonly string[]): Promise<Connection[]>;
  /** One that is gone already is fine. @throws NetlinkError */
  delete(connection: Pick<Connection, 'family' | 'key'>): Promise<void>;
  close(): void;
}

/** For so many IPv4 addresses the kernel is asked about each; of more, about all connections at once. */
const MAX_FILTERED = 4;

export const createConntrack = ({ netnsFd }: { readonly netnsFd?: number } = {}): Conntrack => {
  const socket = new NetlinkSocket({ protocol: PROTOCOL.netfilter, ...(netnsFd === undefined ? {} : { netnsFd }) });
  const dump = (body: Uint8Array): Promise<Connection[]> =>
    socket.dump({ type: CONNTRACK_MESSAGE.get, flags: 0, body, what: 'list connections' }, (message) =>
      message.type === CONNTRACK_MESSAGE.new ? decodeConnection(message.body) : undefined,
    );
  return {
    async listFrom(sources) {
      const wanted = new Set(sources);
      const v4 = sources.filter((source) => !source.includes(':'));
      const bodies = [
        ...(v4.length > MAX_FILTERED ? [encodeConnections(4)] : v4.map(encodeConnectionsFrom)),
        ...(sources.length > v4.length ? [encodeConnections(6)] : []),
      ];
      const found: Connection[] = [];
      for (const body of bodies)
        for (const connection of await dump(body)) if (wanted.has(connection.original.source)) found.push(connection);
      return found;
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
