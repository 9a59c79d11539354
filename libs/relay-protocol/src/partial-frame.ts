import { LENGTH_BYTES, lengthAt } from './frame.ts';

const BLOCK_BYTES = 2048;
const BLOCKS_KEPT = 256;
const EMPTY = new Uint8Array(0);

/** Blocks for beginnings of frames: most reads end within a frame, and a frame is rarely longer than a packet. */
export class BlockPool {
  readonly #free: Uint8Array[] = [];

  take(size: number): Uint8Array {
    return size > BLOCK_BYTES ? new Uint8Array(size) : (this.#free.pop() ?? new Uint8Array(BLOCK_BYTES));
  }

  give(block: Uint8Array): void {
    if (block.length === BLOCK_BYTES && this.#free.length < BLOCKS_KEPT) this.#free.push(block);
  }
}

/**
 * The beginning of a frame whose rest has not come yet. It grows with what came, not with what the length field announces:
 * a peer that announces 64 KiB and sends nothing holds 2 KiB.
 */
export class PartialFrame {
  #bytes: Uint8Array | undefined;
  #filled = 0;

  get length(): number {
    return this.#filled;
  }

  /** Bytes until the frame is whole, as far as is known: its length field may itself be missing. */
  get missing(): number {
    const whole = this.#bytes === undefined || this.#filled < LENGTH_BYTES ? 0 : lengthAt(this.#bytes, 0);
    return LENGTH_BYTES + whole - this.#filled;
  }

  append(source: Uint8Array, start: number, end: number, pool: BlockPool): void {
    const filled = this.#filled + end - start;
    const old = this.#bytes;
    if (old === undefined || filled > old.length) {
      const grown = pool.take(old === undefined ? filled : Math.max(filled, 2 * old.length));
      if (old !== undefined) {
        grown.set(old.subarray(0, this.#filled));
        pool.give(old);
      }
      this.#bytes = grown;
    }
    this.#bytes!.set(source.subarray(start, end), this.#filled);
    this.#filled = filled;
  }

  /** The bytes in place, until the next change. */
  view(): Uint8Array {
    return this.#bytes?.subarray(0, this.#filled) ?? EMPTY;
  }

  /** Puts the bytes in front of `at`, says where they begin, and forgets them. */
  restore(target: Uint8Array, at: number, pool: BlockPool): number {
    const bytes = this.#bytes;
    if (bytes === undefined) return at;
    const start = at - this.#filled;
    target.set(bytes.subarray(0, this.#filled), start);
    this.clear(pool);
    return start;
  }

  clear(pool: BlockPool): void {
    if (this.#bytes !== undefined) pool.give(this.#bytes);
    this.#bytes = undefined;
    this.#filled = 0;
  }
}
