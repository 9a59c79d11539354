/**
 * The probe of a direct path: UDP payload from one WireGuard port to the other, network byte order. WireGuard's messages
 * begin with a byte of 1 to 4; what begins as this does it drops.
 *
 *      0  u32  magic 0xf5 "UBP"
 *      4  u8   version, 1
 *      5  u8   type: 1 request, 2 reply
 *      6  u8   what the sender is: 1 on the relay, 2 there but ready for direct, 3 on direct
 *      7  u8   0
 *      8  8    name of the pair of keys in this direction, by which the receiver finds the key of the code
 *     16  u64  nonce of the sending process: grows with every start
 *     24  u64  sequence, grows with every packet of that process to this peer
 *     32  u64  reply: nonce of its request; request: 0
 *     40  u64  reply: sequence of its request; request: 0
 *     48  16   message authentication code over everything before it
 */
import type { Stance } from './path-choice.ts';
import { areEqual, type Authenticate, MAC_BYTES, ProbeError } from './probe.codec.ts';
import type { Newest } from './replay.ts';

export interface PathProbe extends Newest {
  readonly stance: Stance;
  /** Of a reply: which request it answers. */
  readonly answers?: Newest;
}

/** First four bytes of a path probe. */
export const PATH_PROBE_MAGIC = 0xf5554250;
const VERSION = 1;
const TYPES = { request: 1, reply: 2 } as const;
const STANCES: readonly (Stance | undefined)[] = [undefined, 'relay', 'ready', 'direct'];
export const PATH_PROBE_BYTES = 64;
export const PAIR_NAME_BYTES = 8;
const NAME_AT = 8;

/** @param name of the pair of keys, {@link PAIR_NAME_BYTES} */
export const encodePathProbe = (probe: PathProbe, name: Uint8Array, authenticate: Authenticate): Uint8Array => {
  const bytes = new Uint8Array(PATH_PROBE_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, PATH_PROBE_MAGIC);
  view.setUint8(4, VERSION);
  view.setUint8(5, probe.answers ? TYPES.reply : TYPES.request);
  view.setUint8(6, STANCES.indexOf(probe.stance));
  bytes.set(name, NAME_AT);
  view.setBigUint64(16, probe.nonce);
  view.setBigUint64(24, probe.sequence);
  view.setBigUint64(32, probe.answers?.nonce ?? 0n);
  view.setBigUint64(40, probe.answers?.sequence ?? 0n);
  bytes.set(authenticate(bytes.subarray(0, -MAC_BYTES)), PATH_PROBE_BYTES - MAC_BYTES);
  return bytes;
};

/** A network card may have joined packets of one sender: each is as long as any. What is left over belongs to none. */
export const splitPathProbes = (bytes: Uint8Array): Uint8Array[] =>
  Array.from({ length: Math.floor(bytes.length / PATH_PROBE_BYTES) }, (_, index) =>
    bytes.subarray(index * PATH_PROBE_BYTES, (index + 1) * PATH_PROBE_BYTES),
  );

/** The name of the pair of keys that the packet says it is of; nothing in it is to be trusted yet. @throws ProbeError */
export const pairNameOf = (bytes: Uint8Array): Uint8Array => {
  if (bytes.length !== PATH_PROBE_BYTES)
    throw new ProbeError('length', `${bytes.length} bytes: a path probe has ${PATH_PROBE_BYTES}`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (view.getUint32(0) !== PATH_PROBE_MAGIC)
    throw new ProbeError('magic', 'the packet does not begin as a path probe');
  if (view.getUint8(4) !== VERSION)
    throw new ProbeError('version', `path probe version ${view.getUint8(4)}: this is version ${VERSION}`);
  return bytes.subarray(NAME_AT, NAME_AT + PAIR_NAME_BYTES);
};

/** Reads bytes from outside; the code is checked before any field is trusted. @throws ProbeError */
export const decodePathProbe = (bytes: Uint8Array, authenticate: Authenticate): PathProbe => {
  pairNameOf(bytes);
  if (!areEqual(authenticate(bytes.subarray(0, -MAC_BYTES)), bytes.subarray(-MAC_BYTES)))
    throw new ProbeError('mac', 'the authentication code is wrong: it is forged');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const type = view.getUint8(5);
  const stance = STANCES[view.getUint8(6)];
  const answers = { nonce: view.getBigUint64(32), sequence: view.getBigUint64(40) };
  if (stance === undefined || view.getUint8(7) !== 0)
    throw new ProbeError('malformed', `a path probe says ${view.getUint16(6)} of its sender: 1, 2 or 3, then 0`);
  const probe = { nonce: view.getBigUint64(16), sequence: view.getBigUint64(24), stance };
  if (type === TYPES.reply) return { ...probe, answers };
  if (type !== TYPES.request || answers.nonce !== 0n || answers.sequence !== 0n)
    throw new ProbeError('malformed', `path probe type ${type}: 1 is a request (which answers none), 2 a reply`);
  return probe;
};
