import type { Source } from '@unbounded/controller-runtime';
import type { EgressNodeSlice } from '@unbounded/crds';
import type { Node } from '@unbounded/kube';

/**
 * Owners whose Node was deleted. The machine may still run, and its right to its addresses lasts until its agent has heard of that, or has
 * heard of nobody for so long that it falls silent by itself (15 s and 8 s): until then the address is not another node's.
 */
export interface GoneNodes {
  /** The Nodes, and those of them that are gone for less than that. */
  complete(nodes: readonly Node[], slices: readonly EgressNodeSlice[]): readonly Node[];
  /** Asks for a plan when the time of one is over. */
  readonly source: Source;
}

export interface GoneNodesOptions {
  readonly graceMs: number;
  readonly key: string;
  /** Monotonic, milliseconds. */
  readonly now?: () => number;
}

export const createGoneNodes = ({ graceMs, key, now = () => performance.now() }: GoneNodesOptions): GoneNodes => {
  /** By UID, since we saw it first: also after our start, when it may have gone long before. */
  const goneSinceMs = new Map<string, number>();
  let ask: () => void = () => {};
  return {
    complete(nodes, slices) {
      const uids = new Set(nodes.map(({ metadata }) => metadata.uid));
      const names = new Set(nodes.map(({ metadata }) => metadata.name));
      const owners = slices.filter(({ spec }) => (spec.owned ?? []).length > 0 && !uids.has(spec.nodeUID));
      const gone = new Map(owners.map(({ spec }) => [spec.nodeUID, spec.nodeName]));
      for (const uid of goneSinceMs.keys()) if (!gone.has(uid)) goneSinceMs.delete(uid);
      const kept: Node[] = [];
      for (const [uid, name] of gone) {
        const sinceMs = goneSinceMs.get(uid) ?? now();
        if (!goneSinceMs.has(uid)) setTimeout(() => ask(), graceMs + 1).unref();
        goneSinceMs.set(uid, sinceMs);
        // A Node of that name is the same machine, set up anew.
        if (now() - sinceMs < graceMs && !names.has(name)) kept.push({ metadata: { name, uid } });
      }
      return [...nodes, ...kept];
    },
    source: {
      connect: (enqueue) => {
        ask = () => enqueue(key);
      },
      keys: () => [],
    },
  };
};
