import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

import { DocumentedRelay } from '@unbounded/relay-protocol/documented-relay';

/** A relay of the document over real sockets, which the test may make slow, mute or picky. */
export interface DocumentedServer extends AsyncDisposable {
  readonly port: number;
  readonly relay: DocumentedRelay;
  readonly sockets: ReadonlySet<Socket>;
  /** All bytes that clients have sent, connection after connection. */
  readonly heard: readonly Buffer[][];
  /** Writes to clients in pieces of so many bytes; 0: as they come. */
  pieceBytes: number;
}

export const startDocumentedServer = async (port = 0): Promise<DocumentedServer> => {
  const relay = new DocumentedRelay();
  const sockets = new Set<Socket>();
  const heard: Buffer[][] = [];
  const state = { pieceBytes: 0 };
  const server = createServer({ noDelay: true }, (socket) => {
    const said: Buffer[] = [];
    heard.push(said);
    sockets.add(socket);
    const session = relay.connect({
      send: (bytes) => {
        const step = state.pieceBytes || bytes.length;
        for (let at = 0; at < bytes.length; at += step) socket.write(bytes.subarray(at, at + step));
      },
      close: () => socket.destroy(),
    });
    socket.on('data', (bytes: Buffer) => {
      said.push(bytes);
      session.onBytes(bytes);
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      sockets.delete(socket);
      session.onEnd();
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    relay,
    sockets,
    heard,
    get pieceBytes() {
      return state.pieceBytes;
    },
    set pieceBytes(bytes) {
      state.pieceBytes = bytes;
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
};
