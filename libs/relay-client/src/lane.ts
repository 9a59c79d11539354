/** Frames that wait, first in first out; when there are too many bytes the oldest go. */
export class Lane {
  readonly #maxBytes: number;
  #frames: (Uint8Array | undefined)[] = [];
  #first = 0;
  bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @returns how many frames had to go; the one that has been pushed stays, however long it is */
  push(frame: Uint8Array): number {
    this.#frames.push(frame);
    this.bytes += frame.length;
    let gone = 0;
    while (this.bytes > this.#maxBytes && this.#frames.length - this.#first > 1) {
      this.shift();
      gone++;
    }
    return gone;
  }

  shift(): Uint8Array | undefined {
    const frame = this.#frames[this.#first];
    if (frame === undefined) return undefined;
    this.#frames[this.#first++] = undefined;
    this.bytes -= frame.length;
    if (this.#first === this.#frames.length || this.#first > 1024) {
      this.#frames = this.#frames.slice(this.#first);
      this.#first = 0;
    }
    return frame;
  }

  /** Puts back what `shift` has given last. */
  unshift(frame: Uint8Array): void {
    if (this.#first === 0) this.#frames.unshift(frame);
    else this.#frames[--this.#first] = frame;
    this.bytes += frame.length;
  }

  clear(): void {
    this.#frames = [];
    this.#first = 0;
    this.bytes = 0;
  }
}
