import { assignedSites, peeringsOf, poolsOfSite } from '../world/reach.ts';
import { type Carried, carries } from '../world/usable.ts';
import { arePoolsRelayed, componentOf, isServedByRelay } from '../links/relayed.ts';
import { canBeCalledFrom, canMeet, type Meeting, meetingOf } from '../links/underlay.ts';
import type { Join, PoolModel, World } from '../world/world.ts';

/** How far pools of gateways are from each other: what keeps paths short and without loops. */

/** Whether a pool that is assigned to a site can link with its nodes. */
const canServe = (world: World, { gateways }: PoolModel, site: string): boolean =>
  gateways.some((gateway) => canBeCalledFrom(world, gateway, site) || isServedByRelay(world, site, gateway));

/** What is worked out once for a world and asked for again and again; a world never changes. */
interface Known {
  /** Of {@link servingPools}, by site. */
  readonly serving: Map<string, readonly string[]>;
  /** By what is carried and name; undefined: no gateway of the pool carries it. */
  readonly meetings: Map<string, Meeting | undefined>;
  readonly distances: Map<string, ReadonlyMap<string, number>>;
}

const remembered = new WeakMap<World, Known>();

const knownOf = (world: World): Known => {
  const known = remembered.get(world) ?? { serving: new Map(), meetings: new Map(), distances: new Map() };
  remembered.set(world, known);
  return known;
};

/** Pools that serve a site, by name: assigned to it, and able to link with its nodes. */
export const servingPools = (world: World, site: string): readonly string[] => {
  const { serving } = knownOf(world);
  const known = serving.get(site);
  if (known) return known;
  const pools = poolsOfSite(world, site).filter((name) => canServe(world, world.pools.get(name)!, site));
  serving.set(site, pools);
  return pools;
};

/** Sites that a pool serves, by name. */
export const servedSites = (world: World, name: string): string[] => {
  const pool = world.pools.get(name);
  return pool ? [...assignedSites(world, name)].filter((site) => canServe(world, pool, site)).sort() : [];
};

const meetingOfPool = (world: World, name: string, family: Carried): Meeting | undefined => {
  const { meetings } = knownOf(world);
  const key = `${family} ${name}`;
  if (!meetings.has(key)) {
    const gateways = world.pools.get(name)?.gateways.filter((gateway) => carries(gateway, family)) ?? [];
    meetings.set(key, gateways.length === 0 ? undefined : meetingOf(world, gateways));
  }
  return meetings.get(key);
};

/** Of a link by a relay: more than any way without one, which is taken before. */
const RELAY_DISTANCE = 1_000_000;

/** Links on a way of this distance. */
export const linksIn = (distance: number): number =>
  Math.floor(distance / RELAY_DISTANCE) + (distance % RELAY_DISTANCE);

/** Whether a shortest way from the targets of the distances leads by a pool to one that is peered with it. */
export const isBefore = (
  world: World,
  distances: ReadonlyMap<string, number>,
  { nearer, farther }: { readonly nearer: string; readonly farther: string },
): boolean => {
  const [near, far] = [distances.get(nearer), distances.get(farther)];
  if (near === undefined || far === undefined) return false;
  return near + (arePoolsRelayed(world, nearer, farther) ? RELAY_DISTANCE : 1) === far;
};

/**
 * How many links between peered pools lie between each pool and the nearest of the targets, those by a relay counted as
 * a million; 0 for a target itself. Pools that are not there lead nowhere, nor do those without a gateway for
 * the family, nor peerings of which no two gateways can meet.
 */
export const poolDistances = (
  world: World,
  targets: readonly string[],
  family: Carried,
): ReadonlyMap<string, number> => {
  const known = knownOf(world).distances;
  const key = `${family} ${targets.join('+')}`;
  const distances = known.get(key) ?? spread(world, targets, family);
  known.set(key, distances);
  return distances;
};

/** Pools by the distance that is offered to them, the nearest first. */
const createOffers = () => {
  const best = new Map<string, number>();
  const due = new Map<number, string[]>();
  return {
    offer(name: string, distance: number): void {
      if ((best.get(name) ?? Infinity) <= distance) return;
      best.set(name, distance);
      due.set(distance, [...(due.get(distance) ?? []), name]);
    },
    /** Those that nobody offers less; undefined: there are none any more. */
    next(): { distance: number; names: string[] } | undefined {
      if (due.size === 0) return undefined;
      const distance = Math.min(...due.keys());
      const names = due.get(distance)!.filter((name) => best.get(name) === distance);
      due.delete(distance);
      return { distance, names };
    },
  };
};

/** Of a peering the pools with gateways for the family that nobody has offered a distance to. */
interface Waiting {
  /** By a link of theirs; in parts of which no pool can meet one of another part, since hundreds of pools may have a relay alone. */
  readonly near: ReadonlyMap<number | undefined, Set<string>>;
  /** By a relay. */
  readonly far: Set<string>;
}

const waitingOf = (world: World, { members }: Join, family: Carried): Waiting => {
  const usable = [...members].filter((name) => meetingOfPool(world, name, family));
  const parts = Map.groupBy(usable, (name) => componentOf(world, name));
  return { near: new Map([...parts].map(([part, names]) => [part, new Set(names)])), far: new Set(usable) };
};

const spread = (world: World, targets: readonly string[], family: Carried): Map<string, number> => {
  const distances = new Map<string, number>();
  const offers = createOffers();
  const waiting = new Map<Join, Waiting>();
  const waitingIn = (peering: Join): Waiting => {
    const found = waiting.get(peering) ?? waitingOf(world, peering, family);
    waiting.set(peering, found);
    return found;
  };
  const reach = (name: string, distance: number): void => {
    distances.set(name, distance);
    const here = meetingOfPool(world, name, family)!;
    for (const { near, far } of peeringsOf(world, name).map(waitingIn)) {
      const around = near.get(componentOf(world, name))!;
      for (const other of around) {
        if (!distances.has(other) && !canMeet(world, here, meetingOfPool(world, other, family)!)) continue;
        for (const set of [around, far]) set.delete(other);
        if (!distances.has(other)) offers.offer(other, distance + 1);
      }
      for (const other of world.relay ? far : []) {
        if (!distances.has(other) && !arePoolsRelayed(world, name, other)) continue;
        far.delete(other);
        if (!distances.has(other)) offers.offer(other, distance + RELAY_DISTANCE);
      }
    }
  };
  for (const name of targets) if (meetingOfPool(world, name, family)) offers.offer(name, 0);
  for (let nearest = offers.next(); nearest; nearest = offers.next())
    for (const name of nearest.names) reach(name, nearest.distance);
  return distances;
};
