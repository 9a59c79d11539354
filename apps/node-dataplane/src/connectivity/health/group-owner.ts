import { type Candidate, type Lost, reachedSites, reachesSite, selectMembers } from '@unbounded/health';
import type { Problem } from '@unbounded/topology';
import type { GroupKernel, WeightedGroup } from './group-kernel.port.ts';
import { type Family, type GroupReport, type HealthGroup, type HealthMember, peerId } from './messages.ts';
import type { Verdict } from './verdict-file.ts';

/** The one writer of the kernel's next-hop groups: members as planned, weights as the health of the peers says. */
export interface GroupOwner {
  /** Adds and corrects groups, also those that somebody else changed. */
  apply(groups: readonly HealthGroup[]): Promise<readonly Problem[]>;
  /** Deletes groups that the last plan does not have. */
  removeStale(): Promise<void>;
  /** Writes the groups of a peer whose weights are others by now: a failover is this. */
  refresh(peer: string): void;
  /** The sites that groups of a family reach by the nearest way, and those served. */
  reached(servedSites: readonly string[], family: Family): string[];
  /** The groups with their weights as they were last written. */
  reports(): GroupReport[];
}

/** What is known of peers. */
export interface Verdicts {
  /** Undefined: it is not probed. */
  of(peer: string): Verdict | undefined;
  /** Since when it answers no probe, or returns no echo. */
  lost(peer: string): Lost | undefined;
}

interface Held {
  readonly group: HealthGroup;
  /** What was last written. */
  weights: readonly number[];
}

const weighted = ({ index, family, members }: HealthGroup, weights: readonly number[]): WeightedGroup => ({
  index,
  family,
  members: members.map(({ record }, at) => ({ record, weight: weights[at]! })),
});

/**
 * Under which ids a member of a group is probed, the one that counts first. Locators of stretched L2 are IPv6 whatever families
 * the pods have: where those are IPv4 alone, that is how gateways are probed, by the links that locators take as well.
 */
const probedIds = ({ family }: HealthGroup, { node }: HealthMember): readonly string[] =>
  [family, family === 4 ? (6 as const) : (4 as const)].map((each) => peerId({ node, family: each }));

const reportOf = ({ group, weights }: Held, candidates: readonly Candidate[]): GroupReport => ({
  name: group.name,
  family: group.family,
  ...(group.site === undefined ? {} : { site: group.site }),
  members: group.members.map(({ node, tier }, at) => {
    const { reaches } = candidates[at]!;
    return { node, tier, isActive: weights[at] !== 0, ...(reaches === undefined ? {} : { reachesSite: reaches }) };
  }),
});

/**
 * @param kernel undefined where there is no data plane to write
 */
export const createGroupOwner = (kernel: GroupKernel | undefined, verdicts: Verdicts): GroupOwner => {
  let held = new Map<number, Held>();
  let groupsOf = new Map<string, Held[]>();

  const candidate = (group: HealthGroup, member: HealthMember): Candidate => {
    const id = probedIds(group, member).find((probed) => verdicts.of(probed) !== undefined);
    const verdict = id === undefined ? undefined : verdicts.of(id);
    return {
      tier: member.tier,
      state: verdict?.state,
      reaches: reachesSite(verdict?.sites, group.site),
      inGrace: verdict?.graceOver === false,
      forwards: verdict?.forwards,
      lost: id === undefined ? undefined : verdicts.lost(id),
    };
  };
  const candidates = (group: HealthGroup): Candidate[] => group.members.map((member) => candidate(group, member));
  const weightsOf = (group: HealthGroup): number[] => selectMembers(candidates(group));

  return {
    async apply(groups) {
      held = new Map();
      groupsOf = new Map();
      for (const planned of groups) {
        const members = planned.members.slice(0, kernel?.largestGroup ?? planned.members.length);
        const group = { ...planned, members };
        const entry: Held = { group, weights: weightsOf(group) };
        held.set(group.index, entry);
        for (const id of group.members.flatMap((member) => probedIds(group, member)))
          groupsOf.set(id, [...(groupsOf.get(id) ?? []), entry]);
      }
      const current = () => [...held.values()].map(({ group, weights }) => weighted(group, weights));
      return (await kernel?.ensure(current)) ?? [];
    },
    async removeStale() {
      await kernel?.keepOnly(new Set(held.keys()));
    },
    refresh(peer) {
      for (const entry of groupsOf.get(peer) ?? []) {
        const weights = weightsOf(entry.group);
        if (weights.every((weight, index) => weight === entry.weights[index])) continue;
        entry.weights = weights;
        kernel?.write(weighted(entry.group, weights));
      }
    },
    reports: () => [...held.values()].map((entry) => reportOf(entry, candidates(entry.group))),
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
