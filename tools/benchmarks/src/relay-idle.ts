import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

import {
  ALL_CAPABILITIES,
  decodeExtension,
  encodeData,
  encodeExtension,
  encodeRegister,
  FrameParser,
  proofTags,
} from '@unbounded/relay-protocol';
import { proofCrypto } from '@unbounded/relay-testing/peer';
import { publicKeyBytes } from '@unbounded/wireguard/x25519';

import { memoryOf, type Subject } from './relay-subjects.ts';

/** Connections that are made at the same time. */
const AT_ONCE = 50;
const SETTLE_MS = 3000;
const WARM_UP = 100;

/** One frame at a time, in the order in which they come. */
const framesOf = (socket: Socket): (() => Promise<Uint8Array>) => {
  const parser = new FrameParser();
  const frames: Uint8Array[] = [];
  let wake = (): void => {};
  socket.on('data', (piece) => {
    parser.push(piece, (bytes, start, end) => frames.push(new Uint8Array(bytes.subarray(start, end))));
    wake();
  });
  return async () => {
    while (frames.length === 0)
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    return frames.shift()!;
  };
};

/** Connects, proves a key of its own and sends one message to itself, which comes back. */
const idler = async ({ host, port }: Subject): Promise<Socket> => {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  const key = publicKeyBytes(publicKey);
  const socket = connect({ host, port });
  await once(socket, 'connect');
  const next = framesOf(socket);
  const register = encodeRegister(key);
  const hello = encodeExtension({
    kind: 'hello',
    version: 1,
    capabilities: ALL_CAPABILITIES,
    nonce: randomBytes(16),
    extras: [],
  });
  socket.write(Buffer.concat([register, hello]));
  const challenge = await next();
  const message = decodeExtension(challenge);
  if (message?.kind !== 'challenge') throw new Error(`the relay answered ${message?.kind ?? 'no extension'}`);
  const tags = await proofTags(proofCrypto, [{ privateKey, publicKey: message.ephemeralKey }], {
    register,
    hello,
    challenge,
  });
  socket.write(encodeExtension({ kind: 'proof', tag: tags.client }));
  await next();
  socket.write(encodeData(key, randomBytes(100)));
  await next();
  return socket;
};

const idlers = async (subject: Subject, count: number): Promise<Socket[]> => {
  const sockets: Socket[] = [];
  for (let made = 0; made < count; made += AT_ONCE) {
    const part = Array.from({ length: Math.min(AT_ONCE, count - made) }, () => idler(subject));
    sockets.push(...(await Promise.all(part)));
  }
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  return sockets;
};

/**
 * KiB of the relay's memory for each of so many connections that have proven their key and sent a message. A hundred others
 * come first: compiled code, threads and OpenSSL's tables are not a matter of connections.
 */
export const idleKiBPerConnection = async (subject: Subject, connections: number): Promise<number> => {
  const first = await idlers(subject, WARM_UP);
  const before = memoryOf(subject);
  const sockets = await idlers(subject, connections);
  const held = sockets.filter(({ destroyed }) => !destroyed).length;
  if (held < connections) throw new Error(`${held} of ${connections} connections are still open`);
  const after = memoryOf(subject);
  for (const socket of [...first, ...sockets]) socket.destroy();
  return (after - before) / connections;
};
