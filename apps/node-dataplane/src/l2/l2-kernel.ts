import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { DEVICES, L2_ROUTE_PROTOCOL, nftTableOf } from '@unbounded/config/ownership';
import { formatPrefix, type Prefix } from '@unbounded/ip';
import type { L2Plan } from '@unbounded/l2';
import type { RouteSocket, RouteSpec } from '@unbounded/netlink';
import type { Nftables } from '@unbounded/nftables';
import type { Metrics } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';
import { watchMaps } from '../bpf/map-metrics.ts';
import { deleteAll } from '../kernel/delete-all.ts';
import { ensureRoutes } from '../kernel/routes.ts';
import type { SectionTable } from '../kernel/section-table.ts';
import { ensureL2Devices, type L2Devices, listPorts, removeL2Devices } from './devices.ts';
import { type L2Guards, planL2Guards } from './guards.plan.ts';
import { type MapSync, syncEntries } from './map-entries.ts';
import { type L2Files, type L2Maps, type LoadedL2, loadL2 } from './maps.ts';
import { L2_ALIAS, L2_SECTION } from './names.ts';
import { createL2Programs, type L2Programs } from './programs.ts';
import { type L2Place, type L2Tables, planL2Tables } from './tables.plan.ts';

/** The kernel's state of stretched L2. Guards come first and go last: nothing reaches a port that nobody checks. */

export interface L2KernelParts extends L2Files {
  readonly net: RouteSocket;
  readonly nft: Nftables;
  readonly table: SectionTable;
  /** Of how full the maps are. */
  readonly metrics: Metrics;
}

/** What a node needs besides the plan. */
interface L2Surroundings extends L2Guards {
  /** This node's. */
  readonly locator: Prefix;
}

interface Applied {
  /** What is not as planned. */
  readonly problems: readonly Problem[];
  /** All of the plan that there is room for; what a Network has too much keeps no pod of another one waiting. */
  readonly isInForce: boolean;
}

export interface L2Kernel {
  /**
   * What is in the maps is read again only for another plan or other ports, and once a minute: nobody but this agent writes there.
   */
  apply(plan: L2Plan, surroundings: L2Surroundings): Promise<Applied>;
  /** Takes all of it away, but for ports, which go with their pods. @throws NetlinkError, NftablesError: the rest is there still */
  tearDown(): Promise<void>;
  /** Something of ours is there, of whichever process. */
  isInKernel(): Promise<boolean>;
  /** What the programs count; undefined: there are none. */
  counters(): Pick<L2Maps, 'counters' | 'totals'> | undefined;
  close(): void;
}

const MAPS_READ_EVERY_MS = 60_000;

const failed = (what: string, { message }: Error): Problem => ({ reason: 'L2Failed', message: `${what}: ${message}` });

interface Open {
  readonly loaded: LoadedL2;
  readonly programs: L2Programs;
  readonly watch: Disposable;
}

/** Those that can become full, with what they may have. */
const watchTables = (metrics: Metrics, { ports, networks, fdb, neighbors, addresses, flood, segments }: L2Maps) =>
  watchMaps(metrics, {
    ...{ l2_ports: ports, l2_networks: networks, l2_fdb: fdb, l2_neighbors: neighbors },
    ...{ l2_addresses: addresses, l2_flood: flood, l2_segments: segments },
  });

/** Adds and corrects, what is read first last. */
const writeTables = (maps: L2Maps, tables: L2Tables): MapSync[] => [
  syncEntries('unbounded_l2_counters', perCpu(maps.counters), tables.counters, { keepsValues: true }),
  syncEntries('unbounded_l2_buckets', maps.buckets, tables.buckets, { keepsValues: true }),
  syncEntries('unbounded_l2_addresses', maps.addresses, tables.addresses),
  syncEntries('unbounded_l2_segments', maps.segments, tables.segments),
  // Before the FDB: a frame from another node passes when its MAC is there, and is then held to have no other addresses than these.
  syncEntries('unbounded_l2_neighbors', maps.neighbors, tables.neighbors),
  syncEntries('unbounded_l2_fdb', maps.fdb, tables.fdb),
  syncEntries('unbounded_l2_flood', maps.flood, tables.flood),
  syncEntries('unbounded_l2_networks', maps.networks, tables.networks),
  syncEntries('unbounded_l2_config', maps.config, tables.config),
  syncEntries('unbounded_l2_ports', maps.ports, tables.ports),
];

/** Adds and corrects; what is too much goes when that is called for. */
const syncMaps = (maps: L2Maps, tables: L2Tables): MapSync => {
  const synced = writeTables(maps, tables);
  return {
    problems: synced.flatMap(({ problems }) => problems),
    removeStale() {
      for (const one of synced.toReversed()) one.removeStale();
    },
  };
};

/** Beside what was there before there may have been no room for what comes in its place. */
const settleMaps = (synced: MapSync, maps: L2Maps, tables: L2Tables): readonly Problem[] => {
  synced.removeStale();
  return synced.problems.length === 0 ? [] : syncMaps(maps, tables).problems;
};

interface MapProblems {
  readonly limits: readonly Problem[];
  /** The kernel had no room for what was planned. */
  readonly refused: readonly Problem[];
}
const NONE: MapProblems = { limits: [], refused: [] };

/** Which plan the maps were last compared with, and when. */
const createReadMaps = () => {
  let last: { readonly plan: L2Plan; readonly place: string; readonly atMs: number } | undefined;
  let found: MapProblems = NONE;
  const textOf = ({ locator, entry, ifindexes }: L2Place): string =>
    JSON.stringify([formatPrefix(locator), entry, [...ifindexes]]);
  return {
    isRead: (plan: L2Plan, place: L2Place): boolean =>
      last?.plan === plan && last.place === textOf(place) && performance.now() - last.atMs < MAPS_READ_EVERY_MS,
    read(plan: L2Plan, place: L2Place, problems: MapProblems): void {
      last = { plan, place: textOf(place), atMs: performance.now() };
      found = problems;
    },
    problems: () => found,
    forget(): void {
      [last, found] = [undefined, NONE];
    },
  };
};

/** A counter is the same number on each CPU when it is made. */
const perCpu = (counters: L2Maps['counters']) => ({
  info: counters.info,
  set: (key: Parameters<typeof counters.setAll>[0], value: bigint) => counters.setAll(key, value),
  delete: (key: Parameters<typeof counters.setAll>[0]) => counters.delete(key),
  *entries(): Generator<[Parameters<typeof counters.setAll>[0], bigint]> {
    for (const [key] of counters.entries()) yield [key, 0n];
  },
});

const ownRoute = ({ exit }: L2Devices, locator: Prefix): RouteSpec => ({
  ...{ dst: formatPrefix(locator), link: exit.index, protocol: L2_ROUTE_PROTOCOL },
});

export const createL2Kernel = ({ net, nft, table, metrics, ...files }: L2KernelParts): L2Kernel => {
  const { pinFolder } = files;
  let open: Open | undefined;
  const maps = createReadMaps();
  const opened = (): Open => {
    if (open) return open;
    const loaded = loadL2(files);
    const programs = createL2Programs(loaded, pinFolder);
    return (open = { loaded, programs, watch: watchTables(metrics, loaded.maps) });
  };
  const close = (): void => {
    open?.watch[Symbol.dispose]();
    open?.programs.close();
    open?.loaded.object.close();
    open = undefined;
    maps.forget();
  };

  const applyBehindGuards = async (plan: L2Plan, { locator }: L2Surroundings, devices: L2Devices): Promise<Applied> => {
    const ports = await listPorts(net);
    const { loaded, programs } = opened();
    const place: L2Place = {
      locator,
      entry: { index: devices.entry.index, mac: devices.entry.mac ?? '' },
      ifindexes: new Map(ports.map(({ name, index }) => [name, index])),
    };
    const tables = maps.isRead(plan, place) ? undefined : planL2Tables(plan, place);
    const synced = tables && syncMaps(loaded.maps, tables);
    // A port that no plan has keeps the program, which drops its frames.
    const attached = programs.ensure([devices.exit, ...ports]);
    if (attached.length === 0)
      for (const { index } of ports.filter(({ up }) => !up)) await net.links.modify(index, { up: true });
    const routes = await ensureRoutes(net, [ownRoute(devices, locator)], L2_ROUTE_PROTOCOL);
    await routes.removeStale();
    if (synced) maps.read(plan, place, { limits: tables.limits, refused: settleMaps(synced, loaded.maps, tables) });
    const { limits, refused } = maps.problems();
    const unapplied = [...refused, ...attached, ...routes.problems, ...routes.foreign];
    return { problems: [...limits, ...unapplied], isInForce: unapplied.length === 0 };
  };

  return {
    async apply(plan, surroundings) {
      const { error } = await table.replace(planL2Guards(surroundings));
      if (error) return { problems: [failed('nftables', error)], isInForce: false };
      const { devices, problems } = await ensureL2Devices(net);
      if (!devices) return { problems, isInForce: false };
      return applyBehindGuards(plan, surroundings, devices);
    },
    async tearDown() {
      await deleteAll(net.routes, await net.routes.list({ protocol: L2_ROUTE_PROTOCOL }));
      close();
      rmSync(dirname(pinFolder), { recursive: true, force: true });
      await removeL2Devices(net);
      for (const { family, name } of await nft.listTables())
        if (name === nftTableOf(L2_SECTION)) await nft.deleteTable(family, name);
    },
    async isInKernel() {
      const device = await net.links.get(DEVICES.l2Entry);
      return device?.alias === L2_ALIAS || (await nft.listTables()).some(({ name }) => name === nftTableOf(L2_SECTION));
    },
    counters: () => open?.loaded.maps,
    close,
  };
};
