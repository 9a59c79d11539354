import { FrameError, frameEnd, LENGTH_BYTES, lengthAt, MAX_LENGTH } from './frame.ts';
import { BlockPool, PartialFrame } from './partial-frame.ts';

/** A whole frame: `bytes` from `start` (its length field) to `end`. The bytes are only its own during the call. */
export type OnFrame = (bytes: Uint8Array, start: number, end: number) => void;

/**
 * Cuts a stream into frames, however it comes in pieces. What is whole in a piece is given in place; only the frame that
 * a piece's end cuts is copied. After a FrameError the stream cannot be read on.
 */
export class FrameParser {
  readonly #maxLength: number;
  readonly #pool = new BlockPool();
  readonly #partial = new PartialFrame();

  constructor(maxLength: number = MAX_LENGTH) {
    this.#maxLength = maxLength;
  }

  /** Bytes of the frame that is not whole yet. */
  get pending(): number {
    return this.#partial.length;
  }

  /** @throws FrameError when a length is illegal; the frames before it have been given */
  push(piece: Uint8Array, onFrame: OnFrame): void {
    let at = this.#completePartial(piece, onFrame);
    for (;;) {
      const end = frameEnd(piece, at, piece.length, this.#maxLength);
      if (end < 0) throw illegal(lengthAt(piece, at), this.#maxLength);
      if (end === 0) break;
      onFrame(piece, at, end);
      at = end;
    }
    if (at < piece.length) this.#partial.append(piece, at, piece.length, this.#pool);
  }

  /** Takes from the piece what the begun frame lacks; first of all its length, which says how much that is. */
  #completePartial(piece: Uint8Array, onFrame: OnFrame): number {
    const partial = this.#partial;
    let at = 0;
    while (partial.length > 0 && at < piece.length) {
      const part = Math.min(partial.missing, piece.length - at);
      partial.append(piece, at, at + part, this.#pool);
      at += part;
      if (partial.length < LENGTH_BYTES) break;
      const frame = partial.view();
      const end = frameEnd(frame, 0, frame.length, this.#maxLength);
      if (end < 0) throw illegal(lengthAt(frame, 0), this.#maxLength);
      if (end === 0) continue;
      partial.clear(this.#pool);
      onFrame(frame, 0, end);
    }
    return at;
  }
}

const illegal = (length: number, max: number): FrameError =>
  new FrameError(`frame length is ${length}: 1 to ${max} is legal`);
