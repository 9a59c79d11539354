import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  configKey,
  encapConfig,
  type EncapConfig,
  endpointV4,
  endpointV6,
  forwarderKey,
  innerMac,
  type LocalAddresses,
  localAddresses,
  lpmKeyV4,
  lpmKeyV6,
  present,
} from '@unbounded/bpf-maps';
import { type BpfObject, loadObject } from '@unbounded/libbpf-ts';
import type { Link } from '@unbounded/netlink';
import { DEVICES, type NodePlan, type Problem } from '@unbounded/topology';
import type { HealthGroup } from '../health/messages.ts';
import { type AttachmentOptions, type Attachments, createAttachments, PLACES } from './attachments.ts';
import { type ForwardingTables, planForwardingTables } from './forwarding.plan.ts';
import { createGroupIndexes } from './group-indexes.ts';
import { removeStaleEntries, writeEntries } from './map-sync.ts';
import { isNumber, isRecordOf, stateFile } from './state-file.ts';
import type { StateFaults } from './state-faults.ts';
import type { Guard } from './tunnel-gate.ts';

/**
 * The eBPF programs and their maps. Maps and links are pinned: when the agent ends they go on, and its successor opens
 * the same maps and swaps the programs in place, so that no packet meets a gap.
 */
export interface ForwardingMaps {
  /** Attaches the source check to each tunnel device; which have it. The maps may be empty: then nothing passes it. */
  guard(links: ReadonlyMap<string, Link>): Guard;
  /** What the maps are to hold. The groups come first, from health: the records of `apply` point at them. */
  prepare(plan: NodePlan, links: ReadonlyMap<string, Link>): readonly HealthGroup[];
  /** Writes what the prepared plan adds or changes, and attaches the program that sends by it. */
  apply(): Problem[];
  /** Deletes entries that the plan last applied does not have; then nothing points at groups of old any more. */
  removeStale(): void;
  /** Forgets a device that is about to go. */
  detach(device: string): void;
  /** Lets go of everything; what is pinned stays. */
  close(): void;
}

export interface ForwardingOptions extends AttachmentOptions {
  /** The compiled programs. */
  readonly objectPath: string;
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
  'unbounded_locals',
  'unbounded_stats',
] as const;

const openMaps = (object: BpfObject) => ({
  v4: object.map('unbounded_endpoints_v4', lpmKeyV4, endpointV4),
  v6: object.map('unbounded_endpoints_v6', lpmKeyV6, endpointV6),
  forwarders: object.map('unbounded_forwarders', forwarderKey, present),
  config: object.map('unbounded_config', configKey, encapConfig),
  locals: object.map('unbounded_locals', configKey, localAddresses),
});

const configOf = (plan: NodePlan): EncapConfig => {
  return { anySource: false, ...(plan.underlayIp === '' ? {} : { ownMac: innerMac(plan.underlayIp) }) };
};

const localsOf = ({ ownAddresses = [] }: NodePlan): LocalAddresses => {
  const [ipv4, ipv6] = [false, true].map((isIpv6) => ownAddresses.find((address) => address.includes(':') === isIpv6));
  return { ...(ipv4 === undefined ? {} : { ipv4 }), ...(ipv6 === undefined ? {} : { ipv6 }) };
};

/** What the maps are to hold for a plan. */
interface Prepared {
  readonly config: EncapConfig;
  readonly locals: LocalAddresses;
  readonly tables: ForwardingTables;
}

/** Where the map of next-hop groups is pinned; the thread that probes writes it. */
export const groupMapPin = (pinFolder: string): string => join(pinFolder, 'maps/unbounded_nexthop_groups');

/** Attaches a device's program; what went wrong, if anything. */
const tryAttach = (attachments: Attachments, { name, index }: Link): Problem[] => {
  try {
    attachments.ensure(name, index);
    return [];
  } catch (error) {
    const remedy =
      name === DEVICES.anchor
        ? 'packets for the overlay are dropped there; the agent tries again'
        : 'the source check of its packets is missing, so the device is down; the agent tries again';
    return [{ reason: 'ProgramNotAttached', message: `device ${name}: ${(error as Error).message}: ${remedy}` }];
  }
};

export const openForwardingMaps = (options: ForwardingOptions): ForwardingMaps => {
  const { objectPath, indexFile, faults, ...places } = options;
  const mapFolder = join(places.pinFolder, 'maps');
  mkdirSync(mapFolder, { recursive: true });
  const pins = Object.fromEntries(MAP_NAMES.map((name) => [name, { pinPath: join(mapFolder, name) }]));
  const object = loadObject(readFileSync(objectPath), { name: 'unbounded', maps: pins });
  const maps = openMaps(object);
  const attachments = createAttachments(object, places);
  const numbers = stateFile(indexFile, isRecordOf(isNumber), faults);
  const indexes = createGroupIndexes(numbers.read());
  let prepared: Prepared | undefined;
  let anchor: Link | undefined;

  return {
    guard(links) {
      const tunnels = [...links.values()].filter(({ name }) => PLACES[name]?.direction === 'ingress');
      const found = tunnels.map((link) => ({ link, problems: tryAttach(attachments, link) }));
      return {
        guarded: new Set(found.filter(({ problems }) => problems.length === 0).map(({ link }) => link.name)),
        problems: found.flatMap(({ problems }) => problems),
      };
    },
    prepare(plan, links) {
      anchor = links.get(DEVICES.anchor);
      const ifindexes = new Map([...links].map(([name, link]) => [name, link.index]));
      prepared = {
        config: configOf(plan),
        locals: localsOf(plan),
        tables: planForwardingTables(plan, ifindexes, indexes),
      };
      numbers.write(indexes.toJSON());
      return prepared.tables.groups;
    },
    apply() {
      if (!prepared) return [];
      const { config, locals, tables } = prepared;
      // All entries before the program that reads them.
      const results = [
        writeEntries<0, EncapConfig>('unbounded_config', maps.config, new Map([[0, config]])),
        writeEntries<0, LocalAddresses>('unbounded_locals', maps.locals, new Map([[0, locals]])),
        writeEntries<string, 1>('unbounded_forwarders', maps.forwarders, tables.forwarders),
        writeEntries('unbounded_endpoints_v4', maps.v4, tables.v4),
        writeEntries('unbounded_endpoints_v6', maps.v6, tables.v6),
      ];
      const attached = anchor ? tryAttach(attachments, anchor) : [];
      return [...tables.problems, ...attached, ...results.flatMap(({ problems }) => problems)];
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
