/** Netlink framing (linux/netlink.h): a 16-byte header, then a body, everything in host order (little-endian here). */

export const HEADER_BYTES = 16;

/** `nlmsg_flags`. NLM_F_DUMP is two bits that it shares with REPLACE and EXCL: test both. */
export const FLAG = {
  request: 0x1,
  multi: 0x2,
  ack: 0x4,
  dumpInterrupted: 0x10,
  replace: 0x100,
  excl: 0x200,
  create: 0x400,
  append: 0x800,
  dump: 0x300,
  capped: 0x100,
  ackTlvs: 0x200,
} as const;

/** `nlmsg_type` below the families' own. */
export const CONTROL = { noop: 1, error: 2, done: 3, overrun: 4, firstOfFamily: 16 } as const;

/** A message to send, without its header. */
export interface Request {
  readonly type: number;
  /** Besides NLM_F_REQUEST and NLM_F_ACK. */
  readonly flags: number;
  readonly body: Uint8Array;
  /** For the error: `create link vxlan0`. A function is called only when it is needed. */
  readonly what: string | (() => string);
  /** It is answered only when it is refused (begin and end of a batch: before Linux 6.10 nothing else is said of them). */
  readonly silent?: boolean;
}

/** A message received. `body` is a view into the receive buffer: copy what must outlive the callback. */
export interface Message {
  readonly type: number;
  readonly flags: number;
  readonly seq: number;
  /** `nlmsg_pid`: of a notification, the port of the socket that asked for the change; 0: the kernel itself. */
  readonly port: number;
  readonly body: Uint8Array;
}

/** The bytes are not what the protocol says. */
export class NetlinkDecodeError extends Error {
  override readonly name = 'NetlinkDecodeError';
}

const align = (length: number): number => (length + 3) & ~3;

export const messageBytes = (body: Uint8Array): number => HEADER_BYTES + align(body.length);

/** Writes header and body at `offset`; the padding must be zero already. */
export const writeMessage = (
  bytes: Uint8Array,
  offset: number,
  request: Pick<Request, 'type' | 'flags' | 'body'>,
  seq: number,
): void => {
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset, HEADER_BYTES);
  view.setUint32(0, HEADER_BYTES + request.body.length, true);
  view.setUint16(4, request.type, true);
  view.setUint16(6, request.flags, true);
  view.setUint32(8, seq, true);
  view.setUint32(12, 0, true);
  bytes.set(request.body, offset + HEADER_BYTES);
};

/** Calls `each` for every whole message. @throws NetlinkDecodeError at a length that cannot be */
export const readMessages = (bytes: Uint8Array, each: (message: Message) => void): void => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; at < bytes.length;) {
    const left = bytes.length - at;
    const length = left < HEADER_BYTES ? 0 : view.getUint32(at, true);
    if (length < HEADER_BYTES || length > left) {
      throw new NetlinkDecodeError(
        `netlink message of ${length} bytes at ${at}: it must have ${HEADER_BYTES}..${left}`,
      );
    }
    each({
      type: view.getUint16(at + 4, true),
      flags: view.getUint16(at + 6, true),
      seq: view.getUint32(at + 8, true),
      port: view.getUint32(at + 12, true),
      body: bytes.subarray(at + HEADER_BYTES, at + length),
    });
    at += align(length);
  }
};
