import { createSocket, type Socket } from 'node:dgram';
import { openUdp } from '@unbounded/netlink';
import type { Family } from './messages.ts';

/**
 * The sockets that probes leave by and come in at: one for each overlay address of the node. They are bound to that
 * address, not to all of them: what comes from the underlay's side has no business here.
 */
export interface ProbeSockets {
  /** Opens and closes sockets so that there is one for each address. Returns what could not be opened, with the reason. */
  ensure(addresses: ReadonlyMap<string, Family>): Map<string, string>;
  /** Sends from an address; `failed` is called with the reason when the kernel refuses. */
  send(from: string, to: Destination, bytes: Uint8Array, failed: (code: string) => void): void;
  close(): void;
}

export interface Destination {
  readonly address: string;
  readonly port: number;
}

export interface SocketOptions {
  readonly port: number;
  readonly netnsFd?: number;
  readonly onMessage: (bytes: Uint8Array, from: Destination & { readonly family: Family }) => void;
}

/** Room for the probes of some thousands of peers that come at once. */
const RECEIVE_BUFFER_BYTES = 1 << 20;

const open = (address: string, family: Family, { port, netnsFd, onMessage }: SocketOptions): Socket => {
  const fd = openUdp({ address, port, ...(netnsFd === undefined ? {} : { netnsFd }) });
  const socket = createSocket({
    type: family === 4 ? 'udp4' : 'udp6',
    // Addresses are numbers: nothing is to be looked up.
    lookup: (host, _options, found) => found(null, host, family),
  });
  socket.on('message', (bytes, from) => onMessage(bytes, { address: from.address, port: from.port, family }));
  socket.on('error', () => undefined); // each send tells of its own failure; an interval without reply tells of the rest
  socket.bind({ fd });
  socket.setRecvBufferSize(RECEIVE_BUFFER_BYTES);
  return socket;
};

export const createProbeSockets = (options: SocketOptions): ProbeSockets => {
  const sockets = new Map<string, Socket>();
  return {
    ensure(addresses) {
      const refused = new Map<string, string>();
      for (const [address, socket] of sockets) {
        if (addresses.has(address)) continue;
        socket.close();
        sockets.delete(address);
      }
      for (const [address, family] of addresses) {
        if (sockets.has(address)) continue;
        try {
          sockets.set(address, open(address, family, options));
        } catch (error) {
          refused.set(address, (error as Error).message);
        }
      }
      return refused;
    },
    send(from, { address, port }, bytes, failed) {
      const socket = sockets.get(from);
      if (!socket) return failed('NO_SOCKET');
      socket.send(bytes, port, address, (error) => {
        if (error) failed((error as NodeJS.ErrnoException).code ?? 'UNKNOWN');
      });
    },
    close() {
      for (const socket of sockets.values()) socket.close();
      sockets.clear();
    },
  };
};
