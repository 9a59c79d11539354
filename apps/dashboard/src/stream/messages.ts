import { applyMergePatch, isJsonObject, type Json } from '@unbounded/status/merge-patch';
import type { ClusterView } from '@unbounded/status';

/** The view and its position after a message. */
export interface Held {
  readonly view: ClusterView;
  readonly position: string;
}

/** What hinders the server. */
export interface Noticed {
  readonly notices: readonly string[];
}

/**
 * What is another after a message of the stream. What an update leaves as it is stays the same object, by which the page knows what to draw anew.
 * @returns undefined for a message of a kind that this version does not know
 * @throws Error when it is no message, or an update of a view that is not held
 */
export const heldAfter = (held: Held | undefined, text: string): Held | Noticed | undefined => {
  const message = JSON.parse(text) as unknown;
  if (!isJsonObject(message)) throw new Error('a message is no object');
  const { type, position, view, patch } = message;
  if (type === 'notices') return { notices: Array.isArray(message['notices']) ? message['notices'].map(String) : [] };
  if (type !== 'view' && type !== 'update') return undefined;
  if (typeof position !== 'string') throw new Error('a message has no position');
  if (type === 'view') {
    if (!isJsonObject(view)) throw new Error('a view is no object');
    return { position, view: view as unknown as ClusterView };
  }
  if (!held || patch === undefined) throw new Error('an update of nothing');
  return { position, view: applyMergePatch(held.view as unknown as Json, patch) as unknown as ClusterView };
};
