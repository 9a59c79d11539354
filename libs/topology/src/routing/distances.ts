import { canServe } from '../links/relayed.ts';
import { assignedSites, poolsOfSite } from '../world/reach.ts';
import { type Carried, countedOf } from '../world/usable.ts';
import type { Member, PoolModel, World } from '../world/world.ts';
import { arePoolsMeeting, arePoolsRelayed, hasCarrier, neighboursOf, type PoolList } from './pool-joins.ts';

/** How far pools of gateways are from each other: what keeps paths short and without loops. */

/** Whether a pool that is assigned to a site can link with its nodes. */
const canPoolServe = (world: World, { gateways }: PoolModel, site: string): boolean =>
  countedOf(gateways).some((gateway) => canServe(world, gateway, site));

/** What is worked out once for a world and asked for again and again; a world never changes. */
interface Known {
  /** Of {@link servingPools}, by site. */
  readonly serving: Map<string, readonly string[]>;
  readonly distances: Map<string, ReadonlyMap<string, number>>;
}

const remembered = new WeakMap<World, Known>();

const knownOf = (world: World): Known => {
  const known = remembered.get(world) ?? { serving: new Map(), distances: new Map() };
  remembered.set(world, known);
  return known;
};

/** Pools that serve a site, by name: assigned to it, and able to link with its nodes. */
export const servingPools = (world: World, site: string): readonly string[] => {
  const { serving } = knownOf(world);
  const known = serving.get(site);
  if (known) return known;
  const pools = poolsOfSite(world, site).filter((name) => canPoolServe(world, world.pools.get(name)!, site));
  serving.set(site, pools);
  return pools;
};

/** Sites that a pool serves, by name. */
export const servedSites = (world: World, name: string): string[] => {
  const pool = world.pools.get(name);
  return pool ? [...assignedSites(world, name)].filter((site) => canPoolServe(world, pool, site)).sort() : [];
};

/** The sites that a gateway's pool serves. */
export interface Served {
  /** Those whose nodes it can link with itself, by name. */
  readonly itself: readonly string[];
  /** By each of the others the gateways of its pool that can: it hands on to them what still comes to it. */
  readonly byMates: ReadonlyMap<string, ReadonlySet<string>>;
}

export const servedBy = (world: World, member: Member): Served => {
  if (member.pool === undefined) return { itself: [], byMates: new Map() };
  const sites = servedSites(world, member.pool);
  const itself = sites.filter((site) => canServe(world, member, site));
  const gateways = world.pools.get(member.pool)?.gateways ?? [];
  const matesFor = (site: string): ReadonlySet<string> =>
    new Set(gateways.filter((mate) => canServe(world, mate, site)).map(({ name }) => name));
  return {
    itself,
    byMates: new Map(sites.filter((site) => !itself.includes(site)).map((site) => [site, matesFor(site)])),
  };
};

/** Of a link by a relay: more than any way without one, which is taken before. */
const RELAY_DISTANCE = 1_000_000;

/** Links on a way of this distance. */
export const linksIn = (distance: number): number =>
  Math.floor(distance / RELAY_DISTANCE) + (distance % RELAY_DISTANCE);

/** Two pools that are peered, and what the distances are for. */
interface Step {
  readonly nearer: string;
  readonly farther: string;
  readonly family: Carried;
}

/** Whether a shortest way from the targets of the distances leads by a pool to one that is peered with it. */
export const isBefore = (
  world: World,
  distances: ReadonlyMap<string, number>,
  { nearer, farther, family }: Step,
): boolean => {
  const [near, far] = [distances.get(nearer), distances.get(farther)];
  if (near === undefined || far === undefined) return false;
  return near + (arePoolsRelayed(world, { a: nearer, b: farther, family }) ? RELAY_DISTANCE : 1) === far;
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
    /** Whether the pool has an offer of no more. */
    has: (name: string, distance: number): boolean => (best.get(name) ?? Infinity) <= distance,
    make(name: string, distance: number): void {
      if (this.has(name, distance)) return;
      best.set(name, distance);
      const names = due.get(distance) ?? [];
      names.push(name);
      due.set(distance, names);
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

const spread = (world: World, targets: readonly string[], family: Carried): Map<string, number> => {
  const distances = new Map<string, number>();
  const offers = createOffers();
  const { near, all } = neighboursOf(world, family);
  /** Of each list those that nobody has made an offer yet which later ones, who are farther, cannot better. */
  const left = new Map<PoolList, PoolList>();
  const offerTo = (lists: readonly PoolList[], distance: number, isJoined: (other: string) => boolean): void => {
    for (const list of lists) {
      const waiting = left.get(list) ?? list;
      if (waiting.length === 0) continue;
      const stays = (other: string): boolean => {
        if (offers.has(other, distance)) return false;
        if (!isJoined(other)) return true;
        offers.make(other, distance);
        return false;
      };
      left.set(list, waiting.filter(stays));
    }
  };
  const reach = (name: string, distance: number): void => {
    distances.set(name, distance);
    const pairWith = (other: string) => ({ a: name, b: other, family });
    offerTo(near.get(name) ?? [], distance + 1, (other) => arePoolsMeeting(world, pairWith(other)));
    if (world.relay === undefined) return;
    offerTo(all.get(name) ?? [], distance + RELAY_DISTANCE, (other) => arePoolsRelayed(world, pairWith(other)));
  };
  for (const name of targets) if (hasCarrier(world, name, family)) offers.make(name, 0);
  for (let nearest = offers.next(); nearest; nearest = offers.next())
    for (const name of nearest.names) reach(name, nearest.distance);
  return distances;
};
