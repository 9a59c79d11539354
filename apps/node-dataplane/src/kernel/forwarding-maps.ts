import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  configKey,
  encapConfig,
  type EncapConfig,
  endpointV4,
  endpointV6,
  forwarderKey,
  innerMac,
  lpmKeyV4,
  lpmKeyV6,
  present,
} from '@unbounded/bpf-maps';
import {
  attachProgram,
  type BpfLink,
  type BpfObject,
  type BpfProgram,
  type Direction,
  loadObject,
  openPinnedLink,
} from '@unbounded/libbpf-ts';
import type { Link } from '@unbounded/netlink';
import { DEVICES, type NodePlan, type Problem } from '@unbounded/topology';
import type { HealthGroup } from '../health/messages.ts';
import { type ForwardingTables, planForwardingTables } from './forwarding.plan.ts';
import { createGroupIndexes } from './group-indexes.ts';
import { removeStaleEntries, writeEntries } from './map-sync.ts';
import { isNumber, isRecordOf, stateFile } from './state-file.ts';
import type { StateFaults } from './state-faults.ts';

/**
 * The eBPF programs and their maps. Maps and links are pinned: when the agent ends they go on, and its successor opens
 * the same maps and swaps the programs in place, so that no packet meets a gap.
 */
export interface ForwardingMaps {
  /** What the maps are to hold. The groups come first, from health: the records of `apply` point at them. */
  prepare(plan: NodePlan, links: ReadonlyMap<string, Link>): readonly HealthGroup[];
  /** Attaches the programs and writes what the prepared plan adds or changes. */
  apply(): Problem[];
  /** Deletes entries that the plan last applied does not have; then nothing points at groups of old any more. */
  removeStale(): void;
  /** Forgets a device that is about to go. */
  detach(device: string): void;
  /** Lets go of everything; what is pinned stays. */
  close(): void;
}

export interface ForwardingOptions {
  /** The compiled programs. */
  readonly objectPath: string;
  readonly pinFolder: string;
  /** Where the numbers of groups are kept. */
  readonly indexFile: string;
  readonly faults?: StateFaults;
}

const MAP_NAMES = [
  'unbounded_endpoints_v4',
  'unbounded_endpoints_v6',
  'unbounded_nexthop_groups',
  'unbounded_forwarders',
  'unbounded_config',
  'unbounded_stats',
] as const;

/** Which program stands where. */
const PLACES: Readonly<Record<string, { readonly program: string; readonly direction: Direction }>> = {
  [DEVICES.anchor]: { program: 'unbounded_encap', direction: 'egress' },
  [DEVICES.VXLAN]: { program: 'unbounded_tunnel_ingress', direction: 'ingress' },
  [DEVICES.GENEVE]: { program: 'unbounded_tunnel_ingress', direction: 'ingress' },
  [DEVICES.IPIP]: { program: 'unbounded_tunnel_ingress_l3', direction: 'ingress' },
};

/** Programs at devices. On a kernel without tcx the attachment is a clsact filter, which needs no handle to live. */
const createAttachments = (object: BpfObject, pinFolder: string) => {
  const programs = new Map<string, BpfProgram>();
  const programNamed = (name: string): BpfProgram =>
    programs.get(name) ?? programs.set(name, object.program(name)).get(name)!;
  const held = new Map<string, { readonly ifindex: number; readonly link: BpfLink | undefined }>();
  const pinOf = (device: string): string => join(pinFolder, 'links', device);

  /** The link that an earlier process pinned, with our program swapped in; undefined when it is for another device. */
  const adopt = (device: string, ifindex: number, program: BpfProgram): BpfLink | undefined => {
    if (!existsSync(pinOf(device))) return undefined;
    const link = openPinnedLink(pinOf(device));
    if (link.info.ifindex === ifindex) {
      link.update(program);
      return link;
    }
    link.close();
    rmSync(pinOf(device));
    return undefined;
  };

  return {
    ensure(device: string, ifindex: number): void {
      const place = PLACES[device];
      const known = held.get(device);
      if (!place || (known?.ifindex === ifindex && (known.link === undefined || existsSync(pinOf(device))))) return;
      known?.link?.close();
      mkdirSync(join(pinFolder, 'links'), { recursive: true });
      const program = programNamed(place.program);
      const adopted = adopt(device, ifindex, program);
      if (adopted) return void held.set(device, { ifindex, link: adopted });
      const attachment = attachProgram(program, { ifindex, direction: place.direction, pinPath: pinOf(device) });
      held.set(device, { ifindex, link: attachment.via === 'tcx' ? attachment.link : undefined });
    },
    detach(device: string): void {
      held.get(device)?.link?.close();
      held.delete(device);
      rmSync(pinOf(device), { force: true });
    },
    close(): void {
      for (const { link } of held.values()) link?.close();
      for (const program of programs.values()) program.close();
    },
  };
};

const openMaps = (object: BpfObject) => ({
  v4: object.map('unbounded_endpoints_v4', lpmKeyV4, endpointV4),
  v6: object.map('unbounded_endpoints_v6', lpmKeyV6, endpointV6),
  forwarders: object.map('unbounded_forwarders', forwarderKey, present),
  config: object.map('unbounded_config', configKey, encapConfig),
});

const configOf = (plan: NodePlan): EncapConfig => {
  return { anySource: false, ...(plan.underlayIp === '' ? {} : { ownMac: innerMac(plan.underlayIp) }) };
};

/** A plan with the numbers of the devices that are there. */
interface Prepared {
  readonly config: EncapConfig;
  readonly ifindexes: ReadonlyMap<string, number>;
  readonly tables: ForwardingTables;
}

/** Where the map of next-hop groups is pinned; the thread that probes writes it. */
export const groupMapPin = (pinFolder: string): string => join(pinFolder, 'maps/unbounded_nexthop_groups');

export const openForwardingMaps = ({ objectPath, pinFolder, indexFile, faults }: ForwardingOptions): ForwardingMaps => {
  const mapFolder = join(pinFolder, 'maps');
  mkdirSync(mapFolder, { recursive: true });
  const pins = Object.fromEntries(MAP_NAMES.map((name) => [name, { pinPath: join(mapFolder, name) }]));
  const object = loadObject(readFileSync(objectPath), { name: 'unbounded', maps: pins });
  const maps = openMaps(object);
  const attachments = createAttachments(object, pinFolder);
  const numbers = stateFile(indexFile, isRecordOf(isNumber), faults);
  const indexes = createGroupIndexes(numbers.read());
  let prepared: Prepared | undefined;

  return {
    prepare(plan, links) {
      const ifindexes = new Map([...links].map(([name, link]) => [name, link.index]));
      prepared = { config: configOf(plan), ifindexes, tables: planForwardingTables(plan, ifindexes, indexes) };
      numbers.write(indexes.toJSON());
      return prepared.tables.groups;
    },
    apply() {
      if (!prepared) return [];
      const { config, ifindexes, tables } = prepared;
      // All entries before the program that reads them.
      const results = [
        writeEntries<0, EncapConfig>('unbounded_config', maps.config, new Map([[0, config]])),
        writeEntries<string, 1>('unbounded_forwarders', maps.forwarders, tables.forwarders),
        writeEntries('unbounded_endpoints_v4', maps.v4, tables.v4),
        writeEntries('unbounded_endpoints_v6', maps.v6, tables.v6),
      ];
      for (const [device, ifindex] of ifindexes) attachments.ensure(device, ifindex);
      return [...tables.problems, ...results.flatMap(({ problems }) => problems)];
    },
    removeStale() {
      if (!prepared) return;
      const { tables } = prepared;
      removeStaleEntries(maps.v4, tables.v4);
      removeStaleEntries(maps.v6, tables.v6);
      removeStaleEntries(maps.forwarders, tables.forwarders);
      indexes.keepOnly(new Set(tables.groups.map(({ name }) => name))); // only now does no record point at the others
      numbers.write(indexes.toJSON());
    },
    detach: (device) => attachments.detach(device),
    close() {
      attachments.close();
      for (const map of Object.values(maps)) map.close();
      object.close();
    },
  };
};
