import { applyMergePatch, type ClusterView, clusterView, isJsonObject, type JsonObject } from '@unbounded/status';
import type { ViewStream, ViewUpdate } from '../intake.port.ts';
import { parsePosition, type Position, positionText } from '../view/position.ts';
import { type KeptUpdate, keptUpdate, latest, MOST_UPDATES } from '../view/kept-updates.ts';

/**
 * The view as another replica composed it, and its last updates, to be served as if it were composed here. applied: it is the next one. known:
 * it is part of what is here. gap: something is missing between, or it is of another history. invalid: it makes no view.
 */
type Relayed = 'applied' | 'known' | 'gap' | 'invalid';

export interface RelayedView extends ViewStream {
  apply(position: Position, patch: unknown): Relayed;
  /** What the next update has to be; undefined: nothing is here. */
  expects(position: Position): Exclude<Relayed, 'invalid'>;
  /** From a snapshot, and the updates that led to it, the last one last. Clients get what they miss, or all of it. */
  load(snapshot: { readonly position: Position; readonly view: ClusterView }, updates: readonly ViewUpdate[]): void;
}

export const isClusterView = (value: unknown): value is ClusterView => clusterView.safeParse(value).success;

/** The last of them that follow one another up to that position. */
const leadingTo = (end: Position, updates: readonly ViewUpdate[]): readonly KeptUpdate[] => {
  const leading: ViewUpdate[] = [];
  for (const update of updates.toReversed()) {
    const next = { history: end.history, sequence: end.sequence - leading.length };
    if (update.position === positionText(next)) leading.unshift(update);
    else if (leading.length > 0) break;
  }
  return latest(leading.map(keptUpdate));
};

export const createRelayedView = (): RelayedView => {
  let at: Position | undefined;
  let view: ClusterView | undefined;
  let updates: readonly KeptUpdate[] = [];
  const listeners = new Set<(update: ViewUpdate) => void>();
  const tell = (update: ViewUpdate): void => {
    for (const listener of listeners) listener(update);
  };
  /** Undefined: of another history. */
  const ahead = (position: Position): number | undefined =>
    at && position.history === at.history ? position.sequence - at.sequence : undefined;
  const expects: RelayedView['expects'] = (position) => {
    const steps = ahead(position);
    if (steps === undefined) return 'gap';
    if (steps <= 0) return 'known';
    return steps === 1 ? 'applied' : 'gap';
  };
  const since = (position: Position): readonly ViewUpdate[] | undefined => {
    const steps = ahead(position);
    if (steps === undefined) return undefined;
    // It comes from a replica that had it sooner: what it has had it is not sent again.
    if (steps >= 0) return steps <= MOST_UPDATES ? [] : undefined;
    return -steps <= updates.length ? updates.slice(steps).map(({ update }) => update) : undefined;
  };
  return {
    expects,
    apply(position, patch) {
      const expected = expects(position);
      if (expected !== 'applied') return expected;
      if (!isJsonObject(patch)) return 'invalid';
      const next = applyMergePatch(view as unknown as JsonObject, patch);
      if (!isClusterView(next)) return 'invalid';
      const update = { position: positionText(position), patch };
      [at, view, updates] = [position, next, latest([...updates, keptUpdate(update)])];
      tell(update);
      return 'applied';
    },
    load(snapshot, given) {
      const before = at;
      const steps = ahead(snapshot.position);
      updates = leadingTo(snapshot.position, given);
      [at, view] = [snapshot.position, snapshot.view];
      if (before && steps === 0) return;
      const missed = before && steps !== undefined && steps > 0 ? since(before) : undefined;
      if (missed) for (const update of missed) tell(update);
      else tell({ position: positionText(at), patch: undefined });
    },
    current: () => at && view && { position: positionText(at), view },
    since: (text) => {
      const position = parsePosition(text);
      return position && since(position);
    },
    subscribe(onUpdate) {
      const listener = (update: ViewUpdate): void => onUpdate(update);
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
  };
};
