import type { Source } from '@unbounded/controller-runtime';
import type { EgressNodeSlice } from '@unbounded/crds';
import type { FormerGrant } from '@unbounded/egress';
import type { Node } from '@unbounded/kube';

/**
 * Owners whose Node was deleted. The machine may still run, and its right to its addresses lasts until its agent has heard of that, or has
 * heard of nobody for so long that it falls silent by itself (15 s and 8 s): until then the address is not another node's. Whether a Node
 * of that name is there again changes nothing: it can be another machine, and the same one has not heard of it yet.
 */
export interface GoneNodes {
  /** The Nodes, and those of them that are gone for less than that, without another one of their name. */
  complete(nodes: readonly Node[], slices: readonly EgressNodeSlice[]): readonly Node[];
  /** By the last look: what those had whose name another Node has now. Its slices are soon its own, and say nothing of them. */
  formerGrants(): readonly FormerGrant[];
  /** Asks for a plan when the time of one is over. */
  readonly source: Source;
}

export interface GoneNodesOptions {
  readonly graceMs: number;
  readonly key: string;
  /** Monotonic, milliseconds. */
  readonly now?: () => number;
}

interface GoneNode {
  readonly name: string;
  /** Since we saw it first: also after our start, when it may have gone long before. */
  readonly sinceMs: number;
  readonly grants: readonly FormerGrant[];
}

/** Of Nodes that are not there, by UID. */
const grantsOfGone = (
  slices: readonly EgressNodeSlice[],
  uids: ReadonlySet<string | undefined>,
): ReadonlyMap<string, readonly FormerGrant[]> => {
  const grants = new Map<string, FormerGrant[]>();
  for (const { spec } of slices) {
    const own = (spec.owned ?? []).map(({ address, epoch }) => ({ node: spec.nodeName, address, epoch }));
    if (own.length === 0 || uids.has(spec.nodeUID)) continue;
    grants.set(spec.nodeUID, [...(grants.get(spec.nodeUID) ?? []), ...own]);
  }
  return grants;
};

export const createGoneNodes = ({ graceMs, key, now = () => performance.now() }: GoneNodesOptions): GoneNodes => {
  /** By UID. */
  const gone = new Map<string, GoneNode>();
  let former: readonly FormerGrant[] = [];
  let ask: () => void = () => {};
  const isInTime = ({ sinceMs }: GoneNode): boolean => now() - sinceMs < graceMs;
  const note = (uid: string, grants: readonly FormerGrant[]): void => {
    const known = gone.get(uid);
    if (!known) setTimeout(() => ask(), graceMs + 1).unref();
    gone.set(uid, { name: grants[0]!.node, sinceMs: known?.sinceMs ?? now(), grants });
  };
  return {
    complete(nodes, slices) {
      const uids = new Set(nodes.map(({ metadata }) => metadata.uid));
      const names = new Set(nodes.map(({ metadata }) => metadata.name));
      const found = grantsOfGone(slices, uids);
      for (const [uid, grants] of found) note(uid, grants);
      for (const [uid, node] of gone) if (uids.has(uid) || (!found.has(uid) && !isInTime(node))) gone.delete(uid);
      const inTime = [...gone].filter(([, node]) => isInTime(node));
      former = inTime.flatMap(([, { name, grants }]) => (names.has(name) ? grants : []));
      const kept = inTime.flatMap(([uid, { name }]) => (names.has(name) ? [] : [{ metadata: { name, uid } }]));
      return [...nodes, ...kept];
    },
    formerGrants: () => former,
    source: {
      connect: (enqueue) => {
        ask = () => enqueue(key);
      },
      keys: () => [],
    },
  };
};
