import type { EgressNodeSlice, OwnedAddress } from '@unbounded/crds';

import type { RuleObject } from '../rules/rule.ts';
import type { EgressNode, EgressSnapshot } from '../snapshot.ts';
import { createReportedEpoch, highestEpochs } from './epochs.ts';

/** That a node was made the owner of an address, and may hold it still. */
export interface Grant {
  readonly node: string;
  readonly epoch: number;
  /** The node was asked to release it. */
  readonly isReleasing: boolean;
  /** Of the Node that had this name before: nobody can be asked to release it. */
  readonly isFormer: boolean;
}

export interface GrantBook {
  /** Grants that have not ended, by address: at most one, unless someone else wrote them. */
  readonly grants: ReadonlyMap<string, readonly Grant[]>;
  /** The highest epoch that is known of an address; 0 if none. What nodes report does not count. */
  readonly epochOf: (address: string) => number;
  /** The epoch that a grant to the node would have: above all that are known, and that its agent has reported of itself. */
  readonly nextEpoch: (address: string, node: string) => number;
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

/** Whether the agent confirms that it gave up what its slice demands, by that grant. */
export const isReleaseConfirmed = (
  { address, epoch, release }: Pick<OwnedAddress, 'address' | 'epoch' | 'release'>,
  status: EgressNodeSlice['status'],
): boolean =>
  release === true && (status?.released ?? []).some((grant) => grant.address === address && grant.epoch === epoch);

/** What the slice itself asks for counts alone: an agent can report whatever it likes. */
const ofSlice = ({ spec, status }: EgressNodeSlice, isGone: ReturnType<typeof createIsGone>): GrantEntry[] =>
  (spec.owned ?? []).map(({ address, epoch, release = false }) => {
    const hasEnded = isGone(spec.nodeName, spec.nodeUID) || isReleaseConfirmed({ address, epoch, release }, status);
    return { address, node: spec.nodeName, epoch, isReleasing: release, isFormer: false, hasEnded };
  });

const createIsHeld = (slices: readonly EgressNodeSlice[]): GrantBook['isHeld'] => {
  const keyOf = (address: string, node: string, epoch: number): string => `${address} ${node} ${epoch}`;
  const held = new Set(
    slices.flatMap(({ spec, status }) => {
      const owned = new Set((spec.owned ?? []).map(({ address, epoch }) => keyOf(address, spec.nodeName, epoch)));
      return (status?.held ?? [])
        .map(({ address, epoch }) => keyOf(address, spec.nodeName, epoch))
        .filter((key) => owned.has(key));
    }),
  );
  return (address, { node, epoch }) => held.has(keyOf(address, node, epoch));
};

/** Owners by the status of the rules: what counts when someone has deleted a slice. */
const recordsOf = (objects: readonly RuleObject[]) =>
  objects
    .flatMap(({ assigned }) => assigned)
    .map(({ address, node, formerNode, epoch = 0 }) => ({ address, node: node ?? formerNode, epoch }));

/**
 * Who may hold which address. The slices say so; the status of the rules does for a slice that someone deleted, unless a higher
 * epoch shows that the address has gone on since. Only what controllers write has a say in it; an agent confirms for itself.
 */
export const readGrants = (
  slices: readonly EgressNodeSlice[],
  objects: readonly RuleObject[],
  { nodes, formerGrants }: Pick<EgressSnapshot, 'nodes' | 'formerGrants'>,
): GrantBook => {
  const isGone = createIsGone(nodes);
  const entries = slices.flatMap((slice) => ofSlice(slice, isGone));
  const records = recordsOf(objects);
  const ofSlices = highestEpochs(entries);
  const epochs = highestEpochs([...entries, ...records, ...formerGrants]);
  const reported = createReportedEpoch(slices);

  const orphans = records.flatMap(({ address, node, epoch }): readonly GrantEntry[] => {
    const isKnown = (ofSlices.get(address) ?? -1) >= epoch;
    if (node === undefined || isKnown || epoch < epochs.get(address)!) return [];
    // The record may be older than a release that the agent still reports: with the same epoch that would end a grant of today.
    const isReleasing = reported(address, node) >= Math.max(epoch, 1);
    return [{ address, node, epoch, isReleasing, isFormer: false, hasEnded: isGone(node) }];
  });
  const former = formerGrants.map((grant): GrantEntry => ({
    ...grant,
    isReleasing: false,
    isFormer: true,
    hasEnded: isGone(grant.node),
  }));
  const grants = new Map<string, Grant[]>();
  for (const { address, hasEnded, ...grant } of [...former, ...entries, ...orphans]) {
    const known = grants.get(address) ?? [];
    if (hasEnded || known.some(({ node, epoch }) => node === grant.node && epoch === grant.epoch)) continue;
    grants.set(address, [...known, grant]);
  }
  const epochOf = (address: string): number => epochs.get(address) ?? 0;
  return {
    grants,
    epochOf,
    nextEpoch: (address, node) => Math.max(epochOf(address), reported(address, node)) + 1,
    isHeld: createIsHeld(slices),
  };
};
