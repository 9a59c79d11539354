import { encodeGone, encodePresent, MAX_KEYS_PER_FRAME, type Presence } from '@unbounded/relay-protocol';

import type { Entry } from '../directory.ts';

/**
 * Keys whose presence here a link has yet to send. Of each key only its state of that moment is sent, so a link that is busy delays
 * presence, and neither drops nor reorders it; what waits is bounded by the number of keys.
 */
export class PresenceUpdates {
  /** By the key's text: one that left and came back is another entry of the directory. */
  readonly #changed = new Map<string, Entry>();

  add(entry: Entry): void {
    this.#changed.set(entry.key.toString('latin1'), entry);
  }

  /** Frames for the keys that changed first, `MAX_KEYS_PER_FRAME` at most; undefined: none is left. */
  next(): Buffer | undefined {
    const some = [...this.#changed.entries().take(MAX_KEYS_PER_FRAME)];
    if (some.length === 0) return undefined;
    for (const [key] of some) this.#changed.delete(key);
    const entries = some.map(([, entry]) => entry);
    const present = entries.filter(({ client }) => client !== undefined);
    const gone = entries.filter(({ client }) => client === undefined);
    const frames = [];
    if (gone.length > 0) frames.push(encodeGone(gone.map(({ key }) => key)));
    if (present.length > 0) frames.push(encodePresent(present.map(presenceOf)));
    return Buffer.concat(frames);
  }
}

const presenceOf = ({ key, client }: Entry): Presence => ({ key, proven: client?.isProven ?? false });
