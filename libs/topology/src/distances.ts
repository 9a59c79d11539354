import type { Family } from '@unbounded/ip';
import { assignedSites, networkSites, peeringsOf, poolsOfSite } from './reach.ts';
import { canMeet, type Meeting, meetingOf } from './underlay.ts';
import type { Join, Member, PoolModel, World } from './world.ts';

/** How far pools of gateways are from each other: what keeps paths short and without loops. */

/** A node that others link with: its key and its blocks are known. */
export const isUsable = (member: Member): boolean => member.publicKey !== undefined && member.podCidrs.length > 0;

/** Who has no block of a family does not forward it either. */
export const carries = (member: Member, family: Family): boolean =>
  isUsable(member) && member.podCidrs.some((block) => block.family === family);

/** Whether a pool that is assigned to a site can link with its nodes: from elsewhere only external addresses, and relays, can be called. */
const canServe = (world: World, { external, gateways }: PoolModel, site: string): boolean =>
  gateways.some(
    (g) => networkSites(world, g.site).has(site) || (external && g.externalIps.length > 0) || world.relay !== undefined,
  );

/** Pools that serve a site, by name: assigned to it, and able to link with its nodes. */
export const servingPools = (world: World, site: string): string[] =>
  poolsOfSite(world, site).filter((name) => canServe(world, world.pools.get(name)!, site));

/** Sites that a pool serves, by name. */
export const servedSites = (world: World, name: string): string[] => {
  const pool = world.pools.get(name);
  return pool ? [...assignedSites(world, name)].filter((site) => canServe(world, pool, site)).sort() : [];
};

/** What is worked out once for a world and asked for again and again; a world never changes. */
interface Known {
  /** By family and name; undefined: no gateway of the pool carries the family. */
  readonly meetings: Map<string, Meeting | undefined>;
  readonly distances: Map<string, ReadonlyMap<string, number>>;
}

const remembered = new WeakMap<World, Known>();

const knownOf = (world: World): Known => {
  const known = remembered.get(world) ?? { meetings: new Map(), distances: new Map() };
  remembered.set(world, known);
  return known;
};

const meetingOfPool = (world: World, name: string, family: Family): Meeting | undefined => {
  const { meetings } = knownOf(world);
  const key = `${family} ${name}`;
  if (!meetings.has(key)) {
    const gateways = world.pools.get(name)?.gateways.filter((gateway) => carries(gateway, family)) ?? [];
    meetings.set(key, gateways.length === 0 ? undefined : meetingOf(world, gateways));
  }
  return meetings.get(key);
};

/**
 * How many peered pools lie between each pool and the nearest of the targets; 0 for a target itself. Pools that are not
 * there lead nowhere, nor do those without a gateway for the family, nor peerings of which no two gateways can meet.
 */
export const poolDistances = (
  world: World,
  targets: readonly string[],
  family: Family,
): ReadonlyMap<string, number> => {
  const known = knownOf(world).distances;
  const key = `${family} ${targets.join('+')}`;
  const distances = known.get(key) ?? spread(world, targets, family);
  known.set(key, distances);
  return distances;
};

const spread = (world: World, targets: readonly string[], family: Family): Map<string, number> => {
  const distances = new Map(targets.filter((name) => meetingOfPool(world, name, family)).map((name) => [name, 0]));
  const unreached = new Map<Join, Set<string>>();
  for (let ring = [...distances.keys()], hops = 1; ring.length > 0; hops++) {
    const next: string[] = [];
    for (const [from, peering] of ring.flatMap((name) =>
      peeringsOf(world, name).map((join) => [name, join] as const),
    )) {
      const left = unreached.get(peering) ?? new Set(peering.members);
      unreached.set(peering, left);
      const here = meetingOfPool(world, from, family)!;
      for (const name of left) {
        const there = meetingOfPool(world, name, family);
        if (!distances.has(name) && there && !canMeet(world, here, there)) continue;
        left.delete(name);
        if (distances.has(name) || !there) continue;
        distances.set(name, hops);
        next.push(name);
      }
    }
    ring = next;
  }
  return distances;
};
