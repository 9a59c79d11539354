import type { EgressNodeSlice } from '@unbounded/crds';

import type { RuleObject } from '../rules/rule.ts';
import type { EgressNode } from '../snapshot.ts';

/** That a node was made the owner of an address, and may hold it still. */
export interface Grant {
  readonly node: string;
  readonly epoch: number;
  /** The node was asked to release it. */
  readonly isReleasing: boolean;
}

export interface GrantBook {
  /** Grants that have not ended, by address: at most one, unless someone else wrote them. */
  readonly grants: ReadonlyMap<string, readonly Grant[]>;
  /** The highest epoch that is known of an address; 0 if none. */
  readonly epochOf: (address: string) => number;
  /** The node has said that it has the address since it was made its owner. */
  readonly isHeld: (address: string, grant: Pick<Grant, 'node' | 'epoch'>) => boolean;
}

interface GrantEntry extends Grant {
  readonly address: string;
  readonly hasEnded: boolean;
}

/** A node that may hold nothing: its Node object is gone or another one, or an operator states that it is off. */
const createIsGone = (nodes: readonly EgressNode[]) => {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  return (name: string, uid?: string): boolean => {
    const node = byName.get(name);
    return !node || (uid !== undefined && node.uid !== uid) || (node.isFenced && !node.isAlive);
  };
};

const ofSlice = ({ spec, status }: EgressNodeSlice, isGone: ReturnType<typeof createIsGone>): GrantEntry[] =>
  (spec.owned ?? []).map(({ address, epoch, release = false }) => {
    const isConfirmed = (status?.released ?? []).some((grant) => grant.address === address && grant.epoch >= epoch);
    const hasEnded = isGone(spec.nodeName, spec.nodeUID) || (release && isConfirmed);
    return { address, node: spec.nodeName, epoch, isReleasing: release, hasEnded };
  });

const createIsHeld = (slices: readonly EgressNodeSlice[]): GrantBook['isHeld'] => {
  const keyOf = (address: string, node: string, epoch: number): string => `${address} ${node} ${epoch}`;
  const held = new Set(
    slices.flatMap(({ spec, status }) =>
      (status?.held ?? []).map(({ address, epoch }) => keyOf(address, spec.nodeName, epoch)),
    ),
  );
  return (address, { node, epoch }) => held.has(keyOf(address, node, epoch));
};

/**
 * Who may hold which address. The slices say so; the status of the rules does for a slice that someone deleted, unless a higher
 * epoch shows that the address has gone on since.
 */
export const readGrants = (
  slices: readonly EgressNodeSlice[],
  objects: readonly RuleObject[],
  nodes: readonly EgressNode[],
): GrantBook => {
  const isGone = createIsGone(nodes);
  const entries = slices.flatMap((slice) => ofSlice(slice, isGone));
  const epochs = new Map<string, number>();
  const note = (address: string, epoch = 0): void => {
    epochs.set(address, Math.max(epoch, epochs.get(address) ?? 0));
  };
  for (const { address, epoch } of entries) note(address, epoch);
  const ofSlices = new Map(epochs);
  for (const { status } of slices) {
    for (const { address, epoch } of [...(status?.held ?? []), ...(status?.released ?? [])]) note(address, epoch);
  }
  const assigned = objects.flatMap((object) => object.assigned);
  for (const { address, epoch } of assigned) note(address, epoch);

  const orphans = assigned.flatMap(({ address, node: owner, formerNode, epoch = 0 }): readonly GrantEntry[] => {
    const node = owner ?? formerNode;
    const isKnown = (ofSlices.get(address) ?? -1) >= epoch;
    if (node === undefined || isKnown || epoch < epochs.get(address)!) return [];
    return [{ address, node, epoch, isReleasing: false, hasEnded: isGone(node) }];
  });
  const grants = new Map<string, Grant[]>();
  for (const { address, node, epoch, isReleasing, hasEnded } of [...entries, ...orphans]) {
    const known = grants.get(address) ?? [];
    if (hasEnded || known.some((grant) => grant.node === node && grant.epoch === epoch)) continue;
    grants.set(address, [...known, { node, epoch, isReleasing }]);
  }
  return { grants, epochOf: (address) => epochs.get(address) ?? 0, isHeld: createIsHeld(slices) };
};
