import type { Endpoint, GroupMember, NextHop } from '@unbounded/bpf-maps';
import type { ForwardingEntry, ForwardingWay } from '@unbounded/status';
import type { HealthGroup } from '../../connectivity/health/messages.ts';
import { compareSides, type GroupsInUse, type Side } from '../forwarding.diff.ts';
import type { ForwardingTables } from './forwarding.plan.ts';
import { fingerprint } from '../../bpf/map-sync.ts';

/** The forwarding maps of the eBPF programs: as the last plan has them, and as they are. */

export interface MapContents {
  readonly v4: ReadonlyMap<string, Endpoint>;
  readonly v6: ReadonlyMap<string, Endpoint>;
  readonly groups: ReadonlyMap<number, readonly GroupMember[]>;
}

/** What people call what the maps have numbers for. */
interface Names {
  readonly devices: ReadonlyMap<number, string>;
  readonly groups: ReadonlyMap<number, string>;
}

const hopWay = ({ ifindex, remote, protocol }: NextHop, { devices }: Names): ForwardingWay => ({
  device: devices.get(ifindex) ?? `index ${ifindex}`,
  ...(remote === undefined ? {} : { via: remote }),
  kind: protocol,
});

const groupName = (index: number, { groups }: Names): string => groups.get(index) ?? `group ${index}`;

const endpointSide = (record: Endpoint, names: Names): Side => ({
  ways: [record.group === undefined ? hopWay(record, names) : { group: groupName(record.group, names) }],
  fingerprint: fingerprint(record),
});

const endpointSides = (records: ReadonlyMap<string, Endpoint>, names: Names): Map<string, Side> =>
  new Map([...records].map(([prefix, record]) => [prefix, endpointSide(record, names)]));

const groupSide = (records: readonly NextHop[], names: Names): Side => ({
  ways: records.map((record) => hopWay(record, names)),
  fingerprint: records.map(fingerprint).sort().join('\n'),
});

const recordOf = (member: GroupMember): NextHop => {
  const { weight: _, ...record } = member;
  return record;
};

const recordsOf = ({ name, members }: HealthGroup, inUse: GroupsInUse): NextHop[] => {
  const nodes = inUse.get(name);
  return members.flatMap(({ node, record }) =>
    typeof record !== 'number' && (nodes?.has(node) ?? true) ? [record] : [],
  );
};

/** Of members whose weight is 0 nothing is said: they carry nothing. */
const groupEntries = (
  groups: readonly HealthGroup[],
  present: MapContents['groups'],
  { names, inUse }: { readonly names: Names; readonly inUse: GroupsInUse },
): ForwardingEntry[] => {
  const wanted = groups.map((group) => [group.name, groupSide(recordsOf(group, inUse), names)] as const);
  const seen = [...present].map(([index, members]) => {
    const name = groupName(index, names);
    const counted = inUse.has(name) ? members.filter(({ weight }) => weight > 0) : members;
    return [name, groupSide(counted.map(recordOf), names)] as const;
  });
  return compareSides('unbounded_nexthop_groups', new Map(wanted), new Map(seen));
};

/** @param devices names by their indexes */
export const compareMaps = (
  wanted: Pick<ForwardingTables, 'v4' | 'v6' | 'groups'>,
  present: MapContents,
  { devices, inUse }: { readonly devices: ReadonlyMap<number, string>; readonly inUse: GroupsInUse },
): ForwardingEntry[] => {
  const names = { devices, groups: new Map(wanted.groups.map(({ index, name }) => [index, name])) };
  return [
    ...(['v4', 'v6'] as const).flatMap((family) =>
      compareSides(
        `unbounded_endpoints_${family}`,
        endpointSides(wanted[family], names),
        endpointSides(present[family], names),
      ),
    ),
    ...groupEntries(wanted.groups, present.groups, { names, inUse }),
  ];
};
