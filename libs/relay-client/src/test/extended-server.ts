import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

import {
  ALL_CAPABILITIES,
  decodeExtension,
  decodeMessage,
  encodeExtension,
  encodeRegister,
  type ExtensionMessage,
  FrameParser,
  proofTags,
} from '@unbounded/relay-protocol';

import { platformCrypto } from '../platform-crypto.ts';
import { type Keys, newKeys } from './test-client.ts';

/** What a relay may do wrong, or late. */
export interface Manners {
  /** Its own key; it says `claimedKey` instead when that is given. */
  staticKey?: Keys;
  claimedKey?: Uint8Array;
  ephemeralKey?: Uint8Array;
  spoilsReady?: boolean;
  answersPings?: boolean;
  keepaliveMs?: number;
  capabilities?: number;
}

interface ExtendedConnection {
  readonly socket: Socket;
  readonly kinds: string[];
  readonly data: Buffer[];
  say(message: ExtensionMessage): void;
}

/** A relay that speaks the extension to each client and forwards nothing: what it says beyond that, the test says. */
export interface ExtendedServer extends AsyncDisposable {
  readonly port: number;
  readonly connections: ExtendedConnection[];
  readonly manners: Manners;
}

const serve = (socket: Socket, manners: Manners): ExtendedConnection => {
  const parser = new FrameParser();
  const ephemeral = newKeys();
  const say = (message: ExtensionMessage): void => void socket.write(encodeExtension(message));
  const connection: ExtendedConnection = { socket, kinds: [], data: [], say };
  let clientKey: Uint8Array = new Uint8Array(32);
  let frames = { register: new Uint8Array(), hello: new Uint8Array(), challenge: new Uint8Array() };
  const challenge = (hello: Uint8Array): void => {
    const message = encodeExtension({
      kind: 'challenge',
      version: 1,
      capabilities: manners.capabilities ?? ALL_CAPABILITIES,
      ephemeralKey: manners.ephemeralKey ?? ephemeral.publicKey,
      relayKey: manners.claimedKey ?? manners.staticKey?.publicKey ?? new Uint8Array(32),
      nonce: randomBytes(32),
      expiresInMs: 5000,
    });
    frames = {
      register: new Uint8Array(encodeRegister(clientKey)),
      hello: new Uint8Array(hello),
      challenge: new Uint8Array(message),
    };
    socket.write(message);
  };
  const ready = async (tag: Uint8Array): Promise<void> => {
    const own = [ephemeral, ...(manners.staticKey ? [manners.staticKey] : [])];
    const exchanges = own.map(({ exchange }) => ({ privateKey: exchange, publicKey: clientKey }));
    const tags = await proofTags(platformCrypto, exchanges, frames);
    if (Buffer.compare(tags.client, tag) !== 0) return void socket.destroy();
    const limits = { session: 1n, idleTimeoutMs: 90_000, queueBytes: 0, bytesPerSecond: 0 };
    const readyTag = manners.spoilsReady ? randomBytes(32) : tags.relay;
    say({ kind: 'ready', tag: readyTag, keepaliveMs: manners.keepaliveMs ?? 25_000, ...limits });
  };
  socket.on('data', (piece: Buffer) =>
    parser.push(piece, (bytes, start, end) => {
      const frame = Buffer.from(bytes.subarray(start, end));
      const message = decodeExtension(frame) ?? decodeMessage(frame);
      connection.kinds.push(message.kind);
      if (message.kind === 'register') clientKey = message.key;
      else if (message.kind === 'hello') challenge(frame);
      else if (message.kind === 'proof') void ready(message.tag);
      else if (message.kind === 'data') connection.data.push(Buffer.from(message.payload));
      else if (message.kind === 'ping' && manners.answersPings !== false) say({ kind: 'pong', data: message.data });
    }),
  );
  socket.on('error', () => {});
  return connection;
};

export const startExtendedServer = async (manners: Manners = {}): Promise<ExtendedServer> => {
  const connections: ExtendedConnection[] = [];
  const server = createServer({ noDelay: true }, (socket) => connections.push(serve(socket, manners)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    connections,
    manners,
    [Symbol.asyncDispose]: async () => {
      for (const { socket } of connections) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
};
