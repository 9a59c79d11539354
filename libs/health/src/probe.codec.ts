/**
 * The probe packet: UDP payload, network byte order.
 *
 *      0  u32  magic "UBHP"
 *      4  u8   version, 1
 *      5  u8   type: 1 request, 2 reply
 *      6  u16  flags: 1 the reply says which sites are reached, 2 there are more than it lists
 *      8  u64  nonce of the asking process: grows with every start
 *     16  u64  sequence, grows with every request of that process
 *     24  u64  nanoseconds on the asker's clock; a reply repeats nonce, sequence and time of its request
 *     32  u16  reply: bytes of the request as received; request: 0
 *     34  u16  number of sites that follow, at most 256; request: 0
 *     36  u32  each: hash of a reached site's name ({@link siteHash})
 *     36  u32  request with room for it: my echoes through you do not come back, 1 while others do, 2 nor do any; then
 *          …   request only: padding, ignored (as notices are by versions that do not know them)
 *    last 16   message authentication code over everything before it
 */

export interface ProbeRequest {
  readonly type: 'request';
  readonly nonce: bigint;
  readonly sequence: bigint;
  readonly timeNs: bigint;
  /** The whole payload, bytes: at least {@link PROBE_BYTES}. */
  readonly size: number;
  /** Echoes of the sender that do not come back. Takes {@link NOTICE_BYTES} more. */
  readonly missesEchoes?: MissedEchoes;
}

/** here: those through the receiver, while some through others come back. all: none, so that the sender may be at fault. */
export type MissedEchoes = 'here' | 'all';

/** What a gateway says about sites behind it; workers say nothing. */
export interface ReachedSites {
  readonly hashes: readonly number[];
  /** There are more than are listed: one that is not listed may be reached all the same. */
  readonly truncated: boolean;
}

export interface ProbeReply {
  readonly type: 'reply';
  readonly nonce: bigint;
  readonly sequence: bigint;
  readonly timeNs: bigint;
  readonly sizeReceived: number;
  readonly sites?: ReachedSites;
}

export type Probe = ProbeRequest | ProbeReply;

/** Computes the code of the bytes: 16 bytes. The caller holds the key. */
export type Authenticate = (bytes: Uint8Array) => Uint8Array;

/** Why a packet is no probe; also the label of a metric. */
export type ProbeFault = 'length' | 'magic' | 'version' | 'mac' | 'malformed';

export class ProbeError extends Error {
  readonly fault: ProbeFault;
  constructor(fault: ProbeFault, message: string) {
    super(message);
    this.name = 'ProbeError';
    this.fault = fault;
  }
}

const MAGIC = 0x55424850;
const VERSION = 1;
const TYPES = { request: 1, reply: 2 } as const;
const FLAG = { sites: 1, truncated: 2 } as const;
const HEADER_BYTES = 36;
export const MAC_BYTES = 16;
/** Of a request that says something. */
export const NOTICE_BYTES = 4;
const MISSED = { here: 1, all: 2 } as const satisfies Record<MissedEchoes, number>;
const MISSED_NAMES = new Map(Object.entries(MISSED).map(([name, code]) => [code as number, name as MissedEchoes]));
/** A request without padding, or a reply that says nothing of sites. */
export const PROBE_BYTES = HEADER_BYTES + MAC_BYTES;
/** Bounds of what is sent and read: a jumbo frame. */
export const MAX_PROBE_BYTES = 9000;
/** A reply with as many fits into every path that IPv6 allows. */
export const MAX_SITES = 256;
const LARGEST_U64 = 0xffff_ffff_ffff_ffffn;

const checked = (name: string, value: number, least: number, most: number): number => {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new RangeError(`${name} is ${value}: it must be an integer within ${least}..${most}`);
};

const checkedU64 = (name: string, value: bigint): bigint => {
  if (value >= 0n && value <= LARGEST_U64) return value;
  throw new RangeError(`${name} is ${value}: it must fit into 64 bits without a sign`);
};

const writeSites = (view: DataView, { hashes, truncated }: ReachedSites): void => {
  view.setUint16(6, FLAG.sites | (truncated ? FLAG.truncated : 0));
  view.setUint16(34, hashes.length);
  for (const [index, hash] of hashes.entries())
    view.setUint32(HEADER_BYTES + 4 * index, checked('site hash', hash, 0, 0xffff_ffff));
};

/** @throws RangeError naming the field that is out of its bounds */
export const encodeProbe = (probe: Probe, authenticate: Authenticate): Uint8Array => {
  const listed = probe.type === 'reply' ? checked('number of sites', probe.sites?.hashes.length ?? 0, 0, MAX_SITES) : 0;
  const size =
    probe.type === 'request' ? checked('size', probe.size, PROBE_BYTES, MAX_PROBE_BYTES) : PROBE_BYTES + 4 * listed;
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC);
  view.setUint8(4, VERSION);
  view.setUint8(5, TYPES[probe.type]);
  view.setBigUint64(8, checkedU64('nonce', probe.nonce));
  view.setBigUint64(16, checkedU64('sequence', probe.sequence));
  view.setBigUint64(24, checkedU64('timeNs', probe.timeNs));
  if (probe.type === 'request' && probe.missesEchoes) {
    checked('size', size, PROBE_BYTES + NOTICE_BYTES, MAX_PROBE_BYTES);
    view.setUint32(HEADER_BYTES, MISSED[probe.missesEchoes]);
  }
  if (probe.type === 'reply') {
    view.setUint16(32, checked('sizeReceived', probe.sizeReceived, 0, 0xffff));
    if (probe.sites) writeSites(view, probe.sites);
  }
  bytes.set(authenticate(bytes.subarray(0, -MAC_BYTES)), size - MAC_BYTES);
  return bytes;
};

/** Takes the same time wherever they differ. */
export const areEqual = (a: Uint8Array, b: Uint8Array): boolean => {
  let difference = a.length ^ b.length;
  for (let index = 0; index < a.length; index++) difference |= a[index]! ^ (b[index] ?? 0);
  return difference === 0;
};

const malformed = (message: string): ProbeError => new ProbeError('malformed', message);

const readRequest = (view: DataView, size: number): ProbeRequest => {
  if (view.getUint16(6) !== 0 || view.getUint32(32) !== 0)
    throw malformed('a request has flags, a received size or sites: they must be 0');
  const missesEchoes = size < PROBE_BYTES + NOTICE_BYTES ? undefined : MISSED_NAMES.get(view.getUint32(HEADER_BYTES));
  return { type: 'request', ...readIdentity(view), size, ...(missesEchoes ? { missesEchoes } : {}) };
};

const readIdentity = (view: DataView) => ({
  nonce: view.getBigUint64(8),
  sequence: view.getBigUint64(16),
  timeNs: view.getBigUint64(24),
});

const readReply = (view: DataView, size: number): ProbeReply => {
  const flags = view.getUint16(6);
  const count = view.getUint16(34);
  const saysSites = (flags & FLAG.sites) !== 0;
  if (flags > (FLAG.sites | FLAG.truncated) || (!saysSites && (flags !== 0 || count !== 0)))
    throw malformed(`a reply has flags ${flags} and ${count} sites: flags are 0, 1 or 3, and sites come with flag 1`);
  if (count > MAX_SITES || size !== PROBE_BYTES + 4 * count)
    throw malformed(`a reply of ${size} bytes lists ${count} sites: at most ${MAX_SITES}, each with 4 bytes`);
  const reply = { type: 'reply' as const, ...readIdentity(view), sizeReceived: view.getUint16(32) };
  if (!saysSites) return reply;
  const hashes = Array.from({ length: count }, (_, index) => view.getUint32(HEADER_BYTES + 4 * index));
  return { ...reply, sites: { hashes, truncated: (flags & FLAG.truncated) !== 0 } };
};

/** Reads bytes from outside; the code is checked before any field is trusted. @throws ProbeError */
export const decodeProbe = (bytes: Uint8Array, authenticate: Authenticate): Probe => {
  const size = bytes.length;
  if (size < PROBE_BYTES || size > MAX_PROBE_BYTES)
    throw new ProbeError('length', `${size} bytes: a probe has ${PROBE_BYTES}..${MAX_PROBE_BYTES}`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, size);
  if (view.getUint32(0) !== MAGIC) throw new ProbeError('magic', 'the packet does not begin as a probe');
  if (view.getUint8(4) !== VERSION)
    throw new ProbeError('version', `probe version ${view.getUint8(4)}: this is version ${VERSION}`);
  if (!areEqual(authenticate(bytes.subarray(0, -MAC_BYTES)), bytes.subarray(-MAC_BYTES)))
    throw new ProbeError('mac', 'the authentication code is wrong: the keys of the two ends differ, or it is forged');
  const type = view.getUint8(5);
  if (type === TYPES.request) return readRequest(view, size);
  if (type === TYPES.reply) return readReply(view, size);
  throw malformed(`probe type ${type}: 1 is a request, 2 a reply`);
};
