import type { ClusterView, JsonObject } from '@unbounded/status';
import { createMergePatch } from '@unbounded/status';
import type { ViewStream, ViewUpdate } from '../intake.port.ts';
import { type KeptUpdate, keptUpdate, latest } from './kept-updates.ts';
import { parsePosition, positionText } from './position.ts';

/** The view and how it came to be, for as long as a client may be away and go on from where it was. */
export interface ViewHistory extends ViewStream {
  /** Nothing is told when it is the same. */
  append(view: ClusterView): void;
}

/** @param id of this history: a position of another one leads nowhere */
export const createViewHistory = (id: string): ViewHistory => {
  let view: ClusterView | undefined;
  let sequence = 0;
  let kept: readonly KeptUpdate[] = [];
  const listeners = new Set<(update: ViewUpdate) => void>();
  const position = (): string => positionText({ history: id, sequence });
  return {
    append(next) {
      const patch = createMergePatch((view ?? {}) as unknown as JsonObject, next as unknown as JsonObject);
      if (!patch) return;
      view = next;
      sequence++;
      const update = { position: position(), patch };
      kept = latest([...kept, keptUpdate(update)]);
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
