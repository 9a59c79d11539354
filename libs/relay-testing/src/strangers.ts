import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

import { encodeData, encodeExtension, encodeKeepalive, encodeRegister } from '@unbounded/relay-protocol';

import { newKeys, prove, TestPeer } from './peer.ts';

/** What a stranger at the relay's ports may try, each as an attempt that throws when it succeeds. */

export interface StrangerTarget {
  readonly host: string;
  readonly port: number;
  readonly linkPort: number;
  readonly healthPort: number;
  /** A key that is on the relay's list and registered, which is no secret. */
  readonly memberKey: Uint8Array;
  /** Of a member's registration, as it went over the wire. */
  readonly recorded: { readonly hello: Uint8Array; readonly proof: Uint8Array };
  /** Where the stranger calls from, by the number of the attempt; not set: the system's choice. */
  readonly from?: (attempt: number) => string;
}

interface Stranger extends StrangerTarget {
  readonly localAddress: string | undefined;
}

/** What an attempt needs beside the port of clients, all of which not every relay shows to strangers. */
type Needs = 'links' | 'health' | 'recording';

export interface StrangerAttempt {
  readonly name: string;
  readonly needs?: Needs;
  readonly run: (target: StrangerTarget, attempt: number) => Promise<void>;
}

const WITHIN_MS = 15_000;
const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const hello = () =>
  encodeExtension({ kind: 'hello', version: 1, capabilities: 15, nonce: randomBytes(16), extras: [] });
const PROXY_V2 = hex('0d0a0d0a000d0a515549540a2111000c7f0000017f00000110000d96');

const socketTo = ({ host, localAddress }: Stranger, port: number): Socket =>
  connect({ host, port, ...(localAddress === undefined ? {} : { localAddress }) });
/** It may be cut at any moment, also before it stands. */
const open = (stranger: Stranger, port = stranger.port): TestPeer => new TestPeer(socketTo(stranger, port));

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** It was cut, and got nothing but a question or an Error before. @throws Error when it was served */
const expectCut = async (peer: TestPeer): Promise<void> => {
  await peer.until('the relay cuts it', () => peer.closed, WITHIN_MS);
  const served = peer.frames.filter((frame) => ![0x41, 0xff].includes(frame[4]!));
  if (served.length > 0) throw new Error(`a stranger was served: ${served[0]!.toString('hex').slice(0, 80)}`);
};

const sends =
  (...frames: readonly (Uint8Array | ((stranger: Stranger) => Uint8Array))[]) =>
  async (stranger: Stranger): Promise<void> => {
    using peer = open(stranger);
    peer.send(...frames.map((frame) => (typeof frame === 'function' ? frame(stranger) : frame)));
    await expectCut(peer);
  };

/** Connections that say this and then nothing, all at once, for a moment. */
const holds =
  (count: number, first: Uint8Array, port: (stranger: Stranger) => number) =>
  async (stranger: Stranger): Promise<void> => {
    const peers = Array.from({ length: count }, () => open(stranger, port(stranger)));
    for (const { socket } of peers) if (first.length > 0) socket.write(first);
    await wait(500);
    for (const { socket } of peers) socket.destroy();
  };

const toClients = ({ port }: Stranger): number => port;
const toLinks = ({ linkPort }: Stranger): number => linkPort;
const toHealth = ({ healthPort }: Stranger): number => healthPort;

const proves = async (stranger: Stranger, claimed?: Uint8Array): Promise<void> => {
  using peer = open(stranger);
  const keys = newKeys();
  const outcome = await prove(peer, keys, claimed ?? keys.publicKey).then(
    ({ ready }) => ready['kind'],
    () => 'cut',
  );
  if (outcome === 'ready') throw new Error('a stranger has got a key');
};

const linkWith = (psk: Buffer | undefined) => async (stranger: Stranger) => {
  const { host, linkPort, localAddress } = stranger;
  const how =
    psk === undefined
      ? { rejectUnauthorized: false }
      : { ciphers: 'ECDHE-PSK-CHACHA20-POLY1305', pskCallback: () => ({ psk, identity: 'unbounded-relay' }) };
  const tls = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2', checkServerIdentity: () => undefined } as const;
  const socket = connectTls({ host, port: linkPort, ...(localAddress && { localAddress }), ...tls, ...how });
  let isSecure = false;
  socket
    .on('secureConnect', () => (isSecure = true))
    .on('error', () => {})
    .resume();
  using peer = new TestPeer(socket);
  await peer.until('the relay cuts it', () => peer.closed, WITHIN_MS);
  if (isSecure) throw new Error('a stranger has linked');
};

/** The answer's status; 0: none. */
const ask = (
  { host, healthPort, localAddress }: Stranger,
  path: string,
  method = 'GET',
  headers = {},
): Promise<number> =>
  new Promise((resolve) => {
    const from = localAddress === undefined ? {} : { localAddress };
    const sent = request({ host, port: healthPort, path, method, headers, agent: false, ...from }, (response) => {
      response.resume().on('close', () => resolve(response.statusCode ?? 0));
    });
    sent.setTimeout(WITHIN_MS, () => sent.destroy());
    sent.on('error', () => resolve(0)).end();
  });
const asks =
  (path: string, method: string, allowed: readonly number[], headers: object = {}) =>
  async (stranger: Stranger): Promise<void> => {
    const status = await ask(stranger, path, method, headers);
    if (!allowed.includes(status)) throw new Error(`${method} ${path} was answered with ${status}`);
  };

const register = ({ memberKey }: Stranger): Uint8Array => encodeRegister(memberKey);
const toMember = ({ memberKey }: Stranger): Uint8Array => encodeData(memberKey, Buffer.from('from a stranger'));

const attempts: readonly (readonly [name: string, attempt: (stranger: Stranger) => Promise<void>, needs?: Needs])[] = [
  ['random bytes', (stranger) => sends(Buffer.concat([hex('ff'), randomBytes(1 << 20)]))(stranger)],
  ['an HTTP request to the port of clients', sends(Buffer.from('GET / HTTP/1.1\r\nHost: relay\r\n\r\n'))],
  ['a frame of length 0', sends(hex('0000000001'))],
  ['a frame of length 65,537', sends(hex('0001000102'))],
  ['a frame of 4 GiB', sends(hex('ffffffff'))],
  ['Data to a member before Register', sends(toMember)],
  ['a Keepalive before Register', sends(encodeKeepalive())],
  ['a Register that is a byte too long', sends(hex('0000002201'), randomBytes(33))],
  ['a key that is on no list', (stranger) => sends(encodeRegister(newKeys().publicKey))(stranger)],
  ['a key that is on no list, with its proof', (stranger) => proves(stranger)],
  ['a member’s key without a proof, and Data to members', sends(register, toMember)],
  ['a member’s key with another key’s proof', (stranger) => proves(stranger, stranger.memberKey)],
  [
    'a member’s key with a proof of random bytes',
    (stranger) => sends(register, hello(), encodeExtension({ kind: 'proof', tag: randomBytes(32) }))(stranger),
  ],
  [
    'a member’s proof, replayed',
    sends(
      register,
      ({ recorded }) => recorded.hello,
      ({ recorded }) => recorded.proof,
    ),
    'recording',
  ],
  [
    'a proof before any question',
    (stranger) => sends(register, encodeExtension({ kind: 'proof', tag: randomBytes(32) }))(stranger),
  ],
  ['the key of zeros', sends(encodeRegister(Buffer.alloc(32)))],
  ['the key that is one', sends(encodeRegister(Buffer.concat([hex('01'), Buffer.alloc(31)])))],
  ['a key of order 8', sends(encodeRegister(hex('e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800')))],
  [
    'thousands of pings and Data without a key',
    async (stranger) => {
      using peer = open(stranger);
      const ping = encodeExtension({ kind: 'ping', data: Buffer.alloc(8) });
      peer.send(register(stranger), hello(), ...Array.from({ length: 5000 }, () => [ping, toMember(stranger)]).flat());
      await expectCut(peer);
    },
  ],
  ['a long frame in parts without a key', sends(register, hex('0000ffff02'), randomBytes(30_000))],
  ['a PROXY header where no balancer is', sends(PROXY_V2, register)],
  ['a PROXY header of version 1', sends(Buffer.from('PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n'), register)],
  [
    'a Register byte by byte',
    async (stranger) => {
      using peer = open(stranger);
      const bytes = register(stranger);
      let sent = 0;
      const timer = setInterval(() => peer.socket.write(bytes.subarray(sent % 37, (sent++ % 37) + 1)), 200);
      await expectCut(peer).finally(() => clearInterval(timer));
    },
  ],
  ['a TLS handshake that is none', sends(hex('16030100050100000100'), Buffer.alloc(100, 0x41))],
  ['a hundred TLS handshakes that never end', holds(100, hex('1603010200010001fc0303'), toClients)],
  ['two hundred connections that say nothing', holds(200, Buffer.alloc(0), toClients)],
  ['two hundred halves of a Register', holds(200, hex('0000002101aabb'), toClients)],
  [
    'two hundred registrations of a member’s key that prove nothing',
    (stranger) => holds(200, register(stranger), toClients)(stranger),
  ],
  [
    'a thousand connections that come and go',
    async (stranger) => {
      for (let round = 0; round < 20; round++) {
        const peers = Array.from({ length: 50 }, () => open(stranger));
        await wait(10);
        for (const { socket } of peers) socket.destroy();
      }
    },
  ],
  [
    'the port of links, without TLS',
    async (stranger) => {
      using peer = open(stranger, stranger.linkPort);
      peer.send(Buffer.concat([hex('ff'), randomBytes(4096)]));
      await peer.until('the relay cuts it', () => peer.closed, WITHIN_MS);
    },
    'links',
  ],
  [
    'the port of links, as a client',
    async (stranger) => {
      using peer = open(stranger, stranger.linkPort);
      peer.send(register(stranger));
      await peer.until('the relay cuts it', () => peer.closed, WITHIN_MS);
    },
    'links',
  ],
  ['the port of links, by TLS without the secret', linkWith(undefined), 'links'],
  ['the port of links, with another secret', (stranger) => linkWith(randomBytes(32))(stranger), 'links'],
  ['three hundred connections to the port of links that say nothing', holds(300, Buffer.alloc(0), toLinks), 'links'],
  ['three hundred half handshakes at the port of links', holds(300, hex('1603010200010001fc0303'), toLinks), 'links'],
  ['three hundred connections to the port of health that say nothing', holds(300, Buffer.alloc(0), toHealth), 'health'],
  [
    'three hundred requests that never end',
    holds(300, Buffer.from('GET /metrics HTTP/1.1\r\nX: '), toHealth),
    'health',
  ],
  [
    'three hundred requests for metrics at once',
    async (stranger) => void (await Promise.all(Array.from({ length: 300 }, () => ask(stranger, '/metrics')))),
    'health',
  ],
  ['a request with a header of 64 KiB', asks('/healthz', 'GET', [431, 0], { x: 'y'.repeat(65_536) }), 'health'],
  ['a POST', asks('/metrics', 'POST', [405]), 'health'],
  ['a path out of the folder', asks('/../../etc/passwd', 'GET', [404]), 'health'],
];

export const strangerAttempts: readonly StrangerAttempt[] = attempts.map(([name, attempt, needs]) => ({
  name,
  ...(needs && { needs }),
  run: (target, index) => attempt({ ...target, localAddress: target.from?.(index) }),
}));
