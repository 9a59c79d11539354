import { MAX_FRAME_BYTES, MAX_LINK_LENGTH } from '@unbounded/relay-protocol';

/**
 * Bytes of one read. All connections read into the same buffer: a read is worked off before the next one begins. Four
 * times what libuv would take by itself, because every read costs the same some microseconds, whatever it brings.
 */
export const READ_BYTES = 256 * 1024;
/** Room in front of a read for the beginning of a frame that the read before it has cut. */
export const HEADROOM = Math.max(MAX_FRAME_BYTES, MAX_LINK_LENGTH + 4);
/** The most that one read can give to one connection. */
const ROUND_BYTES = HEADROOM + READ_BYTES;

/** The buffer of all reads, with a view for reading keys four bytes at a time. */
export class ReadSlab {
  readonly bytes = Buffer.allocUnsafeSlow(ROUND_BYTES);
  readonly view = new DataView(this.bytes.buffer, 0, ROUND_BYTES);
  /** Where the kernel puts what it reads. */
  readonly target = this.bytes.subarray(HEADROOM);
}

/** Sizes of buffers. The smallest holds a frame or ten, the middle one of a queue's blocks, the greatest a whole read. */
const SIZES = [16 * 1024, MAX_LINK_LENGTH + 4, ROUND_BYTES] as const;
/** Free bytes kept of each size. A write that the kernel takes at once gives its buffer straight back. */
const KEPT_BYTES = 2 * 1024 * 1024;

/**
 * Buffers for what is written, and the account of what is held in queues and unfinished writes. Whoever reads slowly makes
 * the relay hold something; `limit` is for all of them together.
 */
export class Memory {
  readonly limit: number;
  held = 0;
  readonly #free: Buffer[][] = SIZES.map(() => []);

  constructor(limit: number) {
    this.limit = limit;
  }

  /** A buffer of at least that many bytes; at most those of a read. */
  take(size: number): Buffer {
    const index = size <= SIZES[0] ? 0 : size <= SIZES[1] ? 1 : 2;
    return this.#free[index]!.pop() ?? Buffer.allocUnsafeSlow(SIZES[index]);
  }

  give(buffer: Buffer): void {
    const index = buffer.length === SIZES[0] ? 0 : buffer.length === SIZES[1] ? 1 : 2;
    const free = this.#free[index]!;
    if (free.length * buffer.length < KEPT_BYTES) free.push(buffer);
  }

  /** Whether as much more may be held. */
  allows(size: number): boolean {
    return this.held + size <= this.limit;
  }
}
