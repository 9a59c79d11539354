import { parsePosition, type Position } from '../view/position.ts';

/** What of the view lies in Redis. Nothing of it is trusted. */

export interface ViewEntry {
  readonly position: Position;
  /** Compressed; empty: a history begins here, and the view is in the snapshot. */
  readonly packed: Buffer;
}

/** Undefined: it is none of ours, or damaged. */
export const parseViewEntry = (fields: ReadonlyMap<string, Buffer>): ViewEntry | undefined => {
  const position = parsePosition(fields.get('p')?.toString() ?? '');
  const packed = fields.get('d');
  return position && packed && { position, packed };
};
