import { GROUP_MEMBERS, type GroupMember } from '@unbounded/bpf-maps';
import type { BpfMap } from '@unbounded/libbpf-ts';
import { removeStaleEntries, writeEntries } from '../../bpf/map-sync.ts';
import type { GroupKernel, WeightedGroup } from '../../connectivity/health/group-kernel.port.ts';

export type GroupMap = BpfMap<number, readonly GroupMember[]>;

export const groupEntry = ({ members }: Pick<WeightedGroup, 'members'>): GroupMember[] =>
  members.flatMap(({ record, weight }) => (typeof record === 'number' ? [] : [{ ...record, weight }]));

/** Groups in the map that the eBPF programs read. */
export const createMapGroups = (map: GroupMap): GroupKernel => ({
  largestGroup: GROUP_MEMBERS,
  async ensure(groups) {
    const wanted = new Map(groups().map((group) => [group.index, groupEntry(group)]));
    return writeEntries<number, readonly GroupMember[]>('unbounded_nexthop_groups', map, wanted).problems;
  },
  write: (group) => map.set(group.index, groupEntry(group)),
  async keepOnly(indexes) {
    removeStaleEntries(map, new Map([...indexes].map((index) => [index, []])));
  },
  close: async () => map.close(),
});
