import type { ViewUpdate } from '../intake.port.ts';

/** The last updates of a view, for clients that were away for a while. */

/** A client that was away for longer gets all of the view: an update is due every 3 s. */
export const MOST_UPDATES = 200;
/** Characters of JSON of all updates that are kept: what nodes report decides how large they are. */
const MOST_KEPT = 16 * 1024 * 1024;

export interface KeptUpdate {
  readonly update: ViewUpdate;
  /** Characters of its JSON. */
  readonly size: number;
}

export const keptUpdate = (update: ViewUpdate): KeptUpdate => ({ update, size: JSON.stringify(update.patch).length });

/** The last ones within both bounds. */
export const latest = (kept: readonly KeptUpdate[]): readonly KeptUpdate[] => {
  let size = 0;
  const first = kept.findLastIndex((one) => (size += one.size) > MOST_KEPT) + 1;
  return kept.slice(Math.max(first, kept.length - MOST_UPDATES));
};
