import { encodeGone, encodePresent, MAX_KEYS_PER_FRAME, type Presence } from '@unbounded/relay-protocol';

import type { Entry } from '../directory.ts';

/**
 * Keys whose presence here a link has yet to send. Of each key only its state of that moment is sent, so a link that is busy delays
 * presence, and neither drops nor reorders it; what waits is bounded by the number of keys.
 */
export class PresenceUpdates {
  readonly #changed = new Set<Entry>();

  add(entry: Entry): void {
    this.#changed.add(entry);
  }

  /** Frames for the keys that changed first, `MAX_KEYS_PER_FRAME` at most; undefined: none is left. */
  next(): Buffer | undefined {
    const entries = [...this.#changed.values().take(MAX_KEYS_PER_FRAME)];
    if (entries.length === 0) return undefined;
    for (const entry of entries) this.#changed.delete(entry);
    const present = entries.filter(({ client }) => client !== undefined);
    const gone = entries.filter(({ client }) => client === undefined);
    // A key that left and came back is two entries of the directory: what has gone comes first.
    const frames = [];
    if (gone.length > 0) frames.push(encodeGone(gone.map(({ key }) => key)));
    if (present.length > 0) frames.push(encodePresent(present.map(presenceOf)));
    return Buffer.concat(frames);
  }
}

const presenceOf = ({ key, client }: Entry): Presence => ({ key, proven: client?.isProven ?? false });
