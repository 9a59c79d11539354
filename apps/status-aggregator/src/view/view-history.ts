import type { ClusterView, JsonObject } from '@unbounded/status';
import { createMergePatch } from '@unbounded/status';
import type { ViewStream, ViewUpdate } from '../intake.port.ts';
import { parsePosition, positionText } from './position.ts';

/** The view and how it came to be, for as long as a client may be away and go on from where it was. */
export interface ViewHistory extends ViewStream {
  /** Nothing is told when it is the same. */
  append(view: ClusterView): void;
}

/** A client that was away for longer gets all of the view: an update is due every 3 s. */
export const MOST_UPDATES = 200;
/** Characters of JSON of all updates that are kept: what nodes report decides how large they are. */
const MOST_KEPT = 16 * 1024 * 1024;

interface Kept {
  readonly update: ViewUpdate;
  readonly size: number;
}

/** The last ones within both bounds. */
const latest = (kept: readonly Kept[]): readonly Kept[] => {
  let size = 0;
  const first = kept.findLastIndex((one) => (size += one.size) > MOST_KEPT) + 1;
  return kept.slice(Math.max(first, kept.length - MOST_UPDATES));
};

/** @param id of this history: a position of another one leads nowhere */
export const createViewHistory = (id: string): ViewHistory => {
  let view: ClusterView | undefined;
  let sequence = 0;
  let kept: readonly Kept[] = [];
  const listeners = new Set<(update: ViewUpdate) => void>();
  const position = (): string => positionText({ history: id, sequence });
  return {
    append(next) {
      const patch = createMergePatch((view ?? {}) as unknown as JsonObject, next as unknown as JsonObject);
      if (!patch) return;
      view = next;
      sequence++;
      const update = { position: position(), patch };
      kept = latest([...kept, { update, size: JSON.stringify(patch).length }]);
      for (const listener of listeners) listener(update);
    },
    current: () => view && { position: position(), view },
    since(known) {
      const at = parsePosition(known);
      const missed = at?.history === id ? sequence - at.sequence : -1;
      if (missed < 0 || missed > kept.length) return undefined;
      return missed === 0 ? [] : kept.slice(-missed).map(({ update }) => update);
    },
    subscribe(onUpdate) {
      const listener = (update: ViewUpdate): void => onUpdate(update);
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
  };
};
