import { type BlockPool, PartialFrame } from '@unbounded/relay-protocol';

import { HEADROOM, type ReadSlab } from './memory.ts';

/** From a frame's first byte to its last. */
const FRAME_DEADLINE_MS = 30_000;

/** What a connection keeps between two reads: the frame that the first one has cut. Nothing, mostly. */
export class Intake {
  readonly #slab: ReadSlab;
  readonly #pool: BlockPool;
  readonly #partial = new PartialFrame();
  #since = 0;

  constructor(slab: ReadSlab, pool: BlockPool) {
    this.#slab = slab;
    this.#pool = pool;
  }

  /** So many bytes were read to HEADROOM. Where frames begin now; -1: they only made the cut frame longer. */
  open(count: number): number {
    const partial = this.#partial;
    if (partial.length === 0) return HEADROOM;
    if (count >= partial.missing) return partial.restore(this.#slab.bytes, HEADROOM, this.#pool);
    partial.append(this.#slab.bytes, HEADROOM, HEADROOM + count, this.#pool);
    return -1;
  }

  /** Keeps what is left of a read. */
  keep(start: number, end: number, now: number): void {
    if (start >= end) return;
    this.#since = now;
    this.#partial.append(this.#slab.bytes, start, end, this.#pool);
  }

  /** Whether somebody holds memory here by never ending a frame. */
  hasWaitedTooLong(now: number): boolean {
    return this.#partial.length > 0 && now - this.#since > FRAME_DEADLINE_MS;
  }

  clear(): void {
    this.#partial.clear(this.#pool);
  }
}
