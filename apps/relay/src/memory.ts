import { MAX_FRAME_BYTES, MAX_LINK_LENGTH } from '@unbounded/relay-protocol';

/**
 * Bytes of one read. All connections read into the same buffer: a read is worked off before the next one begins. Four
 * times what libuv would take by itself, because every read costs the same some microseconds, whatever it brings.
 */
export const READ_BYTES = 256 * 1024;
/** Room in front of a read for the beginning of a frame that the read before it has cut. */
export const HEADROOM = Math.max(MAX_FRAME_BYTES, MAX_LINK_LENGTH + 4);
/** The longest frame of any kind. */
export const MAX_LINK_FRAME_BYTES = MAX_LINK_LENGTH + 4;
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
const SIZES = [16 * 1024, MAX_LINK_FRAME_BYTES, ROUND_BYTES] as const;
/** Free bytes kept of each size. A write that the kernel takes at once gives its buffer straight back. */
const KEPT_BYTES = 2 * 1024 * 1024;

/** One connection that holds queue memory. */
export interface Holder {
  /** Bytes of its buffers, whole. */
  held: number;
  /** What it may queue without pressure: holders are compared by their part of it. */
  readonly weight: number;
  /** Whether it has a block of frames that could be dropped. */
  readonly canShed: boolean;
  /** Drops its oldest block of frames, and counts them. */
  shed(): void;
}

/** Blocks that are dropped at most to make room for that many bytes: twice as many of the smallest as would be enough. */
const mostSheds = (size: number): number => Math.max(8, 2 * Math.ceil(size / SIZES[0]));

/**
 * Buffers for what is written, and the account of what is held in queues and unfinished writes. Whoever reads slowly makes
 * the relay hold something; `limit` is for all of them together. When it is reached the connection that holds the most
 * pays for the next one, so that each has its share whatever the others do.
 */
export class Memory {
  readonly limit: number;
  held = 0;
  readonly #free: Buffer[][] = SIZES.map(() => []);
  readonly #holders = new Set<Holder>();

  constructor(limit: number) {
    this.limit = limit;
  }

  /** More than half is held: no connection may have more of it than it needs. */
  get isTight(): boolean {
    return this.held * 2 > this.limit;
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

  /** The holder has the buffer now. */
  hold(holder: Holder, buffer: Buffer): void {
    this.held += buffer.length;
    holder.held += buffer.length;
    this.#holders.add(holder);
  }

  /** The holder has it no more. */
  release(holder: Holder, buffer: Buffer): void {
    this.held -= buffer.length;
    holder.held -= buffer.length;
    if (holder.held === 0) this.#holders.delete(holder);
  }

  /** A buffer for frames that wait, already held; the greediest connections make room for it. Undefined: there is none. */
  claim(holder: Holder, size: number): Buffer | undefined {
    if (!this.#makeRoom(holder, size)) return undefined;
    const buffer = this.take(size);
    this.hold(holder, buffer);
    return buffer;
  }

  /**
   * The holder has the buffer, whatever the limit is: a write that the kernel has begun. The greediest connections make room at
   * once, or the next claim, of somebody who holds little, would have to make room for all such writes.
   */
  pin(holder: Holder, buffer: Buffer): void {
    this.#makeRoom(holder, buffer.length);
    this.hold(holder, buffer);
  }

  #makeRoom(holder: Holder, size: number): boolean {
    const most = mostSheds(size);
    for (let sheds = 0; this.held + size > this.limit; sheds++) {
      const greediest = sheds < most ? this.#greediest(holder, size) : undefined;
      if (greediest === undefined) return false;
      greediest.shed();
    }
    return true;
  }

  /** Whoever holds the greatest part of its due and has something to drop: the one that asks, unless another has more. */
  #greediest(asking: Holder, size: number): Holder | undefined {
    let found = asking.canShed ? asking : undefined;
    let most = (asking.held + size) / asking.weight;
    for (const holder of this.#holders) {
      const part = holder.held / holder.weight;
      if (part <= most || !holder.canShed) continue;
      found = holder;
      most = part;
    }
    return found;
  }
}
