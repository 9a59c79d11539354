import { GROUP_MEMBERS, type GroupMember } from '@unbounded/bpf-maps';
import { type Candidate, reachedSites, reachesSite, selectMembers } from '@unbounded/health';
import type { BpfMap } from '@unbounded/libbpf-ts';
import type { Problem } from '@unbounded/topology';
import { removeStaleEntries, writeEntries } from '../kernel/map-sync.ts';
import { type Family, type HealthGroup, type HealthMember, peerId } from './messages.ts';
import type { Verdict } from './verdict-file.ts';

/** The one writer of the kernel's next-hop groups: members as planned, weights as the health of the peers says. */
export interface GroupOwner {
  /** Adds and corrects groups, also those that somebody else changed. */
  apply(groups: readonly HealthGroup[]): readonly Problem[];
  /** Deletes groups that the last plan does not have. */
  removeStale(): void;
  /** Writes the groups of a peer whose weights are others by now: a failover is this. */
  refresh(peer: string): void;
  /** The sites that groups of a family reach by the nearest way, and those served. */
  reached(servedSites: readonly string[], family: Family): string[];
}

export type GroupMap = BpfMap<number, readonly GroupMember[]>;

interface Held {
  readonly group: HealthGroup;
  /** What was last written. */
  weights: readonly number[];
}

const weighted = ({ members }: HealthGroup, weights: readonly number[]): GroupMember[] =>
  members.map(({ record }, index) => ({ ...record, weight: weights[index]! }));

/**
 * @param map undefined where there is no data plane to write
 * @param verdictOf what is known of a peer; undefined: it is not probed
 */
export const createGroupOwner = (
  map: GroupMap | undefined,
  verdictOf: (peer: string) => Verdict | undefined,
): GroupOwner => {
  let held = new Map<number, Held>();
  let groupsOf = new Map<string, Held[]>();

  const candidate = (group: HealthGroup, { node, tier }: HealthMember): Candidate => {
    const verdict = verdictOf(peerId({ node, family: group.family }));
    return {
      tier,
      state: verdict?.state,
      reaches: reachesSite(verdict?.sites, group.site),
      inGrace: verdict?.graceOver === false,
    };
  };
  const candidates = (group: HealthGroup): Candidate[] => group.members.map((member) => candidate(group, member));
  const weightsOf = (group: HealthGroup): number[] => selectMembers(candidates(group));

  return {
    apply(groups) {
      held = new Map();
      groupsOf = new Map();
      for (const planned of groups) {
        const group = { ...planned, members: planned.members.slice(0, GROUP_MEMBERS) };
        const entry: Held = { group, weights: weightsOf(group) };
        held.set(group.index, entry);
        for (const { node } of group.members) {
          const id = peerId({ node, family: group.family });
          groupsOf.set(id, [...(groupsOf.get(id) ?? []), entry]);
        }
      }
      if (!map) return [];
      const wanted = new Map([...held].map(([index, { group, weights }]) => [index, weighted(group, weights)]));
      return writeEntries<number, readonly GroupMember[]>('unbounded_nexthop_groups', map, wanted).problems;
    },
    removeStale() {
      if (map) removeStaleEntries(map, new Map([...held.keys()].map((index) => [index, []])));
    },
    refresh(peer) {
      for (const entry of groupsOf.get(peer) ?? []) {
        const weights = weightsOf(entry.group);
        if (weights.every((weight, index) => weight === entry.weights[index])) continue;
        entry.weights = weights;
        map?.set(entry.group.index, weighted(entry.group, weights));
      }
    },
    reached(servedSites, family) {
      const ofFamily = [...held.values()].filter(({ group }) => group.family === family);
      return reachedSites(
        servedSites,
        ofFamily.map(({ group }) => ({
          ...(group.site === undefined ? {} : { site: group.site }),
          members: candidates(group),
        })),
      );
    },
  };
};
