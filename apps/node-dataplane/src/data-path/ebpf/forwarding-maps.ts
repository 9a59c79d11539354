import { join } from 'node:path';
import {
  type Brought,
  brought,
  configKey,
  counter,
  type EchoAddresses,
  echoAddresses,
  encapConfig,
  type EncapConfig,
  endpointV4,
  endpointV6,
  forwarderKey,
  groupKey,
  type GroupMember,
  innerMac,
  layoutFingerprint,
  type LocalAddresses,
  localAddresses,
  lpmKeyV4,
  lpmKeyV6,
  MAPS,
  nexthopGroup,
  type Stat,
  STATS,
  statsKey,
} from '@unbounded/bpf-maps';
import type { BpfObject } from '@unbounded/libbpf-ts';
import type { Link } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { ownEchoAddresses } from '../echo-addresses.ts';
import type { KernelPlan } from '../kernel-plan.ts';
import type { HealthGroup } from '../../connectivity/health/messages.ts';
import type { AttachmentOptions } from '../../bpf/attachments.ts';
import { createDevicePrograms } from './device-programs.ts';
import { type ForwardingTables, planForwardingTables } from './forwarding.plan.ts';
import { createGroupIndexes } from '../group-indexes.ts';
import { groupEntry } from './map-groups.ts';
import { mapFolder, markLayout } from '../../bpf/layout-folder.ts';
import { loadPinned } from '../../bpf/load-pinned.ts';
import type { CountedMap } from '../../bpf/map-metrics.ts';
import { removeStaleEntries, writeEntries } from '../../bpf/map-sync.ts';
import type { MapContents } from './maps.diff.ts';
import { isNumber, isRecordOf, stateFile } from '../../state/state-file.ts';
import type { KernelWrites } from '../../kernel/kernel-writes.ts';
import type { StateFaults } from '../../state/state-faults.ts';
import type { Guard } from '../../connectivity/kernel/tunnel-gate.ts';

/**
 * The eBPF programs and their maps. Maps and links are pinned: when the agent ends they go on, and its successor opens
 * the same maps and swaps the programs in place, so that no packet meets a gap. Where the maps are of another layout, the programs
 * of before go on until its own maps hold the whole plan.
 */
export interface ForwardingMaps {
  /**
   * Sees to it that each tunnel device has a source check; which do. One of ours that is there stays until `apply`. Where no program of
   * ours stands yet, the maps get the plan's entries first: packets of tunnels that are up (the other data path's) go on.
   */
  guard(plan: KernelPlan, links: ReadonlyMap<string, Link>): Guard;
  /** What the maps are to hold. The groups come first, from health: the records of `apply` point at them. */
  prepare(plan: KernelPlan, links: ReadonlyMap<string, Link>): readonly HealthGroup[];
  /** Writes what the prepared plan adds or changes, and brings this agent's programs to the devices: they read it. */
  apply(): Problem[];
  /**
   * Deletes entries that the plan last applied does not have, so that nothing points at groups of old any more, and layouts that no
   * device uses.
   */
  removeStale(): void;
  /** What the plan prepared last wants and, read when it is asked for, what the maps have; undefined: no plan was prepared. */
  tables(): { readonly wanted: ForwardingTables; present(): MapContents } | undefined;
  /** Those that can become full. */
  readonly maps: Readonly<Record<'endpoints_v4' | 'endpoints_v6' | 'nexthop_groups' | 'forwarders', CountedMap>>;
  /** What the programs have counted since their maps were made. */
  counted(): ReadonlyMap<Stat, number>;
  /** Forgets a device that is about to go. */
  detach(device: string): void;
  /** Lets go of everything; what is pinned stays. */
  close(): void;
}

export interface ForwardingOptions extends Omit<AttachmentOptions, 'placeOf'> {
  /** The compiled programs. */
  readonly objectPath: string;
  /** Where the numbers of groups are kept. */
  readonly indexFile: string;
  readonly faults?: StateFaults;
  /** Counts what is written into a map; absent: nobody does. */
  readonly countWrites?: KernelWrites['map'];
}

const openMaps = (object: BpfObject, countWrites: KernelWrites['map']) => ({
  v4: countWrites(object.map('unbounded_endpoints_v4', lpmKeyV4, endpointV4)),
  v6: countWrites(object.map('unbounded_endpoints_v6', lpmKeyV6, endpointV6)),
  groups: countWrites(object.map('unbounded_nexthop_groups', groupKey, nexthopGroup)),
  forwarders: countWrites(object.map('unbounded_forwarders', forwarderKey, brought)),
  config: object.map('unbounded_config', configKey, encapConfig),
  locals: object.map('unbounded_locals', configKey, localAddresses),
  echo: object.map('unbounded_echo', configKey, echoAddresses),
  stats: object.perCpuMap('unbounded_stats', statsKey, counter),
});

const contentsOf = ({ v4, v6, groups }: ReturnType<typeof openMaps>): MapContents => ({
  v4: new Map(v4.entries()),
  v6: new Map(v6.entries()),
  groups: new Map(groups.entries()),
});

const configOf = (plan: KernelPlan): EncapConfig => {
  return { anySource: false, ...(plan.underlayIp === '' ? {} : { ownMac: innerMac(plan.underlayIp) }) };
};

const localsOf = ({ ownAddresses }: KernelPlan): LocalAddresses => {
  const [ipv4, ipv6] = [false, true].map((isIpv6) => ownAddresses.find((address) => address.includes(':') === isIpv6));
  return { ...(ipv4 === undefined ? {} : { ipv4 }), ...(ipv6 === undefined ? {} : { ipv6 }) };
};

const echoOf = ({ echoes }: KernelPlan): EchoAddresses => {
  const own = ownEchoAddresses(echoes);
  const [ipv4, ipv6] = ([4, 6] as const).map((family) => own.get(family));
  return { ...(ipv4 === undefined ? {} : { ipv4 }), ...(ipv6 === undefined ? {} : { ipv6 }) };
};

/** What the maps are to hold for a plan. */
interface Prepared {
  readonly config: EncapConfig;
  readonly locals: LocalAddresses;
  readonly echo: EchoAddresses;
  readonly tables: ForwardingTables;
  readonly links: ReadonlyMap<string, Link>;
}

/** Adds and corrects: what is too much stays. */
const writeMaps = (maps: ReturnType<typeof openMaps>, { config, locals, echo, tables }: Prepared): Problem[] => {
  const results = [
    writeEntries<0, EncapConfig>('unbounded_config', maps.config, new Map([[0, config]])),
    writeEntries<0, LocalAddresses>('unbounded_locals', maps.locals, new Map([[0, locals]])),
    writeEntries<0, EchoAddresses>('unbounded_echo', maps.echo, new Map([[0, echo]])),
    writeEntries<string, Brought>('unbounded_forwarders', maps.forwarders, tables.forwarders),
    writeEntries('unbounded_endpoints_v4', maps.v4, tables.v4),
    writeEntries('unbounded_endpoints_v6', maps.v6, tables.v6),
  ];
  return results.flatMap(({ problems }) => problems);
};

const groupsWithoutWeight = ({ groups }: ForwardingTables): ReadonlyMap<number, readonly GroupMember[]> =>
  new Map(
    groups.map(({ index, members }) => [
      index,
      groupEntry({ members: members.map(({ record }) => ({ record, weight: 0 })) }),
    ]),
  );

/** Where the map of next-hop groups is pinned; the thread that probes writes it. */
export const groupMapPin = (pinFolder: string): string => join(mapFolder(pinFolder), 'unbounded_nexthop_groups');

export const openForwardingMaps = (options: ForwardingOptions): ForwardingMaps => {
  const { objectPath, indexFile, faults, countWrites = (map) => map, ...places } = options;
  const { pinFolder } = places;
  const fingerprint = layoutFingerprint();
  const loaded = loadPinned({ name: 'unbounded', objectPath, pinFolder, maps: MAPS, fingerprint });
  const { object } = loaded;
  const maps = openMaps(object, countWrites);
  const programs = createDevicePrograms(loaded, places);
  const numbers = stateFile(indexFile, isRecordOf(isNumber), faults);
  const indexes = createGroupIndexes(numbers.read());
  let [prepared, isFull]: [Prepared | undefined, boolean] = [undefined, false];

  const hasGroups = ({ tables }: Prepared): boolean =>
    tables.groups.every(({ index }) => maps.groups.get(index) !== undefined);

  const prepare = (plan: KernelPlan, links: ReadonlyMap<string, Link>): Prepared => {
    const ifindexes = new Map([...links].map(([name, link]) => [name, link.index]));
    const tables = planForwardingTables(plan, ifindexes, indexes);
    numbers.write(indexes.toJSON());
    return { config: configOf(plan), locals: localsOf(plan), echo: echoOf(plan), tables, links };
  };

  return {
    guard(plan, links) {
      // Maps of former processes are read by programs of theirs, whoever has them now.
      if (!loaded.hasFormerMaps && prepared === undefined && !programs.standAnywhere(links)) {
        const first = prepare(plan, links);
        // By groups the source check knows their members. Health gives them weights: until then nothing is sent by them.
        writeEntries('unbounded_nexthop_groups', maps.groups, groupsWithoutWeight(first.tables));
        writeMaps(maps, first);
      }
      return programs.guard(links);
    },
    prepare(plan, links) {
      prepared = prepare(plan, links);
      return prepared.tables.groups;
    },
    apply() {
      if (!prepared) return [];
      const { tables, links } = prepared;
      const unwritten = writeMaps(maps, prepared); // all entries before the programs that read them
      const whole = prepared;
      isFull = unwritten.length > 0;
      const attached = programs.bring(links, () => !isFull && hasGroups(whole));
      return [...tables.problems, ...attached, ...unwritten];
    },
    removeStale() {
      if (!prepared) return;
      const { tables, links } = prepared;
      removeStaleEntries(maps.v4, tables.v4);
      removeStaleEntries(maps.v6, tables.v6);
      removeStaleEntries(maps.forwarders, tables.forwarders);
      if (isFull) writeMaps(maps, prepared); // there may be room now
      indexes.keepOnly(new Set(tables.groups.map(({ name }) => name))); // only now does no record point at the others
      numbers.write(indexes.toJSON());
      if (programs.removeOthers(links)) markLayout(pinFolder, fingerprint);
    },
    tables: () => prepared && { wanted: prepared.tables, present: () => contentsOf(maps) },
    maps: {
      ...{ endpoints_v4: maps.v4, endpoints_v6: maps.v6 },
      ...{ nexthop_groups: maps.groups, forwarders: maps.forwarders },
    },
    counted: () =>
      new Map(
        STATS.map((stat) => [stat, Number((maps.stats.get(stat) ?? []).reduce((sum, value) => sum + value, 0n))]),
      ),
    detach: (device) => programs.detach(device),
    close() {
      programs.close();
      for (const map of Object.values(maps)) map.close();
      object.close();
    },
  };
};
