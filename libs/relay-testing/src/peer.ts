import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import {
  createHash,
  createHmac,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';

import {
  ALL_CAPABILITIES,
  type Challenge,
  decodeExtension,
  decodeMessage,
  encodeExtension,
  encodeRegister,
  FrameParser,
  type ProofCrypto,
  proofTags,
} from '@unbounded/relay-protocol';
import { privateKeyObject, publicKeyBytes, publicKeyObject } from '@unbounded/wireguard/x25519';

const LOOK_MS = 20;

/** Keys from names, so that tests say who is who; not X25519 points that anybody has proven. */
export const keyOf = (name: string): Buffer => Buffer.alloc(32, `${name}.key.`);

/** Node's, at once: not the relay's own code. */
export const proofCrypto: ProofCrypto<KeyObject> = {
  x25519: (privateKey, publicKey) => diffieHellman({ privateKey, publicKey: publicKeyObject(publicKey) }),
  sha256: (bytes) => createHash('sha256').update(bytes).digest(),
  hmacSha256: (key, bytes) => createHmac('sha256', key).update(bytes).digest(),
  hkdfSha256: ({ ikm, salt, info, length }) => new Uint8Array(hkdfSync('sha256', ikm, salt, info, length)),
};

export interface KeyPair {
  readonly privateKey: KeyObject;
  /** 32 bytes. */
  readonly publicKey: Buffer;
}

/** One connection to a relay: what it sends is said by the test, byte for byte; what it gets are whole frames. */
export class TestPeer {
  readonly socket: Socket;
  readonly frames: Buffer[] = [];
  readonly #parser = new FrameParser();
  readonly #waiting: (() => void)[] = [];
  closed = false;
  bytes = 0;

  constructor(socket: Socket) {
    this.socket = socket;
    const wake = (): void => {
      for (const resolve of this.#waiting.splice(0)) resolve();
    };
    socket.on('data', (piece: Buffer) => {
      this.bytes += piece.length;
      try {
        this.#parser.push(piece, (bytes, start, end) => this.frames.push(Buffer.from(bytes.subarray(start, end))));
      } catch {
        socket.destroy(); // a TLS alert, for one
      }
      wake();
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.closed = true;
      wake();
    });
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }

  send(...frames: readonly Uint8Array[]): this {
    this.socket.write(Buffer.concat(frames));
    return this;
  }

  /** Resolves when the condition holds, which is looked at whenever something comes, and now and then. @throws Error */
  async until(what: string, condition: () => boolean, withinMs = 8000): Promise<void> {
    const end = performance.now() + withinMs;
    while (!condition()) {
      const left = end - performance.now();
      if (left <= 0) throw new Error(`not within ${withinMs} ms: ${what}`);
      const timeout = Promise.withResolvers<void>();
      const timer = setTimeout(timeout.resolve, Math.min(left, LOOK_MS));
      await Promise.race([new Promise<void>((resolve) => this.#waiting.push(resolve)), timeout.promise]);
      clearTimeout(timer);
    }
  }

  /** The next frame, decoded: a documented message or one of the extension. */
  async next(): Promise<Record<string, unknown> & { kind: string }> {
    await this.until('a frame', () => this.frames.length > 0 || this.closed);
    const frame = this.frames.shift();
    if (frame === undefined) throw new Error('the relay closed the connection');
    const message = decodeMessage(frame);
    return { ...(message.kind === 'unknown' ? (decodeExtension(frame) ?? message) : message) };
  }

  async untilClosed(withinMs?: number): Promise<void> {
    await this.until('the relay closes the connection', () => this.closed, withinMs);
  }
}

export const dial = async (port: number, localAddress = '127.0.0.1'): Promise<TestPeer> => {
  const peer = new TestPeer(connect({ port, host: '127.0.0.1', localAddress, noDelay: true }));
  await once(peer.socket, 'connect');
  return peer;
};

/** Registers and waits until the relay has taken it: a frame to itself comes back. */
export const join = async (port: number, key: Uint8Array): Promise<TestPeer> => {
  const peer = await dial(port);
  peer.send(encodeRegister(key), encodeSelf(key));
  await peer.next();
  return peer;
};

const encodeSelf = (key: Uint8Array): Uint8Array => Buffer.concat([Buffer.from([0, 0, 0, 33, 2]), key]);

export const newKeys = (): KeyPair => {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  return { privateKey, publicKey: publicKeyBytes(publicKey) };
};

/** Static key of a relay, as its --key-file has it. */
export const keyPairOf = (privateKey: KeyObject): KeyPair => ({ privateKey, publicKey: publicKeyBytes(privateKey) });
export const privateKeyOf = privateKeyObject;

export interface Proven {
  readonly peer: TestPeer;
  /** The last answer: `ready`, or the `error` that refused the key before or after the proof. */
  readonly ready: Record<string, unknown>;
  /** As it went over the wire. */
  readonly proof: Uint8Array;
  readonly hello: Uint8Array;
}

/** Registers with the extension and proves the key. */
export const prove = async (
  peer: TestPeer,
  keys: KeyPair,
  registered: Uint8Array = keys.publicKey,
  capabilities = ALL_CAPABILITIES,
): Promise<Proven> => {
  const register = encodeRegister(registered);
  const hello = encodeExtension({ kind: 'hello', version: 1, capabilities, nonce: randomBytes(16), extras: [] });
  peer.send(register, hello);
  await peer.until('the challenge', () => peer.frames.length > 0 || peer.closed);
  const challengeFrame = peer.frames[0];
  const answer = await peer.next();
  if (answer['kind'] === 'error') return { peer, ready: answer, proof: new Uint8Array(), hello };
  const challenge = answer as unknown as Challenge;
  const relayKeys = [challenge.ephemeralKey, challenge.relayKey].filter((key) => key.some((byte) => byte !== 0));
  const exchanges = relayKeys.map((publicKey) => ({ privateKey: keys.privateKey, publicKey }));
  const tags = await proofTags(proofCrypto, exchanges, { register, hello, challenge: challengeFrame! });
  const proof = encodeExtension({ kind: 'proof', tag: tags.client });
  peer.send(proof);
  const ready = await peer.next();
  return {
    peer,
    ready: { ...ready, isOurs: Buffer.compare((ready['tag'] as Buffer | undefined) ?? proof, tags.relay) === 0 },
    proof,
    hello,
  };
};
