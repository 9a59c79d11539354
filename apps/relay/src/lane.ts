import { LENGTH_BYTES, lengthAt } from '@unbounded/relay-protocol';

import type { Holder, Memory } from './memory.ts';

/** Whole frames one after the other, from `from` to `to`. */
export interface Block {
  readonly bytes: Buffer;
  from: number;
  to: number;
  /** When its first frame came. */
  readonly since: number;
}

/** A frame's place in a buffer. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

const FIRST_BLOCK = 16 * 1024;
const NEXT_BLOCK = 64 * 1024;

/** Frames that wait for a connection to have room. Beyond a budget of bytes the oldest go: a fresh packet is worth more. */
export class Lane {
  bytes = 0;
  readonly #memory: Memory;
  readonly #holder: Holder;
  readonly #blocks: Block[] = [];

  constructor(memory: Memory, holder: Holder) {
    this.#memory = memory;
    this.#holder = holder;
  }

  get isEmpty(): boolean {
    return this.#blocks.length === 0;
  }

  /**
   * Takes a copy of the frame. Returns how many frames were lost for it: old ones beyond the budget, or itself when there is
   * no memory.
   */
  push(source: Buffer, { start, end }: Span, budget: number, now: number): number {
    const size = end - start;
    let lost = 0;
    while (this.bytes > 0 && this.bytes + size > budget) {
      this.#dropOldest();
      lost++;
    }
    const block = this.#blockFor(size, now);
    if (block === undefined) return lost + 1;
    block.bytes.set(source.subarray(start, end), block.to);
    block.to += size;
    this.bytes += size;
    return lost;
  }

  /** The oldest block, still held, which is the caller's from now on: for `Memory.release` and `Memory.give`. */
  take(): Block | undefined {
    const block = this.#blocks.shift();
    if (block !== undefined) this.bytes -= block.to - block.from;
    return block;
  }

  /** Gives up the oldest block. Returns how many frames are lost. */
  shed(): number {
    const block = this.take();
    if (block === undefined) return 0;
    let lost = 0;
    for (let at = block.from; at < block.to; at += LENGTH_BYTES + lengthAt(block.bytes, at)) lost++;
    this.#release(block);
    return lost;
  }

  clear(): void {
    for (let block = this.take(); block !== undefined; block = this.take()) this.#release(block);
  }

  #blockFor(size: number, now: number): Block | undefined {
    const last = this.#blocks.at(-1);
    if (last !== undefined && last.bytes.length - last.to >= size) return last;
    // Under pressure shares are given in small pieces.
    const wanted = Math.max(size, last === undefined || this.#memory.isTight ? FIRST_BLOCK : NEXT_BLOCK);
    const bytes = this.#memory.claim(this.#holder, wanted);
    if (bytes === undefined) return undefined;
    const block: Block = { bytes, from: 0, to: 0, since: now };
    this.#blocks.push(block);
    return block;
  }

  #dropOldest(): void {
    const block = this.#blocks[0]!;
    const size = LENGTH_BYTES + lengthAt(block.bytes, block.from);
    block.from += size;
    this.bytes -= size;
    if (block.from < block.to) return;
    this.#blocks.shift();
    this.#release(block);
  }

  #release(block: Block): void {
    this.#memory.release(this.#holder, block.bytes);
    this.#memory.give(block.bytes);
  }
}
