import { AddressSet, type Family, formatPrefix, type Prefix } from '@unbounded/ip';
import { isBefore, poolDistances, servedBy, servingPools } from './distances.ts';
import { type Carried, carries } from '../world/usable.ts';
import type { PeerLink } from '../links/links.plan.ts';
import type { LocalNode } from '../links/local-node.ts';
import { blocksHere } from './near.ts';
import { meshSites, networkSites, peeredPools } from '../world/reach.ts';
import type { Member, World } from '../world/world.ts';
import { canLinkWithPool } from './pool-joins.ts';

/** What lies behind gateways, and the gateways that lead there, the nearest first. */

interface WayMember {
  readonly link: PeerLink;
  /** 0: the nearest; a higher one is used only while no member of a lower one is usable. */
  readonly tier: number;
}

/** All ways to one site, or to what pools route beyond the cluster, for one family. Becomes a group of next hops. */
export interface Way {
  /** Says what is behind it, and so stays the same while gateways come and go. */
  readonly name: string;
  readonly family: Family;
  /** Undefined: routed blocks of pools. */
  readonly site: string | undefined;
  readonly members: readonly WayMember[];
}

export interface WayTo {
  readonly prefix: Prefix;
  readonly way: Way;
  /** false: packets from the block may come this way, but those to it are carried by another CNI plugin. */
  readonly routed: boolean;
  /** Only for what came out of the overlay. */
  readonly onlyTransit?: true;
  /** A block of locators. */
  readonly isLocator?: true;
}

/** Blocks that the same pools lead to. */
interface Target {
  readonly name: string;
  readonly site: string | undefined;
  readonly pools: readonly string[];
  readonly prefixes: readonly Prefix[];
  readonly routed: boolean;
  /** The gateway's pool serves the site, but it cannot link with its nodes: those of its pool that can. */
  readonly mates?: ReadonlySet<string> | undefined;
  readonly onlyTransit?: true;
  readonly isLocator?: true;
}

/** Of ways round alone: who has no other does not reach the site, and must not say so to those who ask. */
const ROUND_TIER = 1;

/**
 * Pools as far from the target as we are, through which a gateway may go when all nearer ones fail: their nearest way
 * never leads back to us (RFC 5286, loop-free alternates). Few, so that plans and allowed addresses stay small where
 * hundreds of pools are peered with each other; both ends of a detour choose the same ones.
 */
const ALTERNATE_POOLS = 2;

/** The node's links to gateways, those of each pool by name. */
type LinksByPool = ReadonlyMap<string, readonly PeerLink[]>;

const linksByPool = (links: readonly PeerLink[], family: Carried): LinksByPool => {
  const byPool = new Map<string, PeerLink[]>();
  for (const link of links) {
    const { pool } = link.peer;
    if (pool !== undefined && carries(link.peer, family)) byPool.set(pool, [...(byPool.get(pool) ?? []), link]);
  }
  return byPool;
};

const tiersToMembers = (tiers: readonly (readonly string[])[], links: LinksByPool): WayMember[] =>
  tiers
    .map((pools) => pools.flatMap((pool) => links.get(pool) ?? []))
    .filter((members) => members.length > 0)
    .flatMap((members, tier) => members.map((link) => ({ link, tier })));

/** A worker enters the nearest of its site's pools; the others in the order of their distance. */
const workerTiers = (entries: readonly string[], distances: ReadonlyMap<string, number>): string[][] => {
  const rings = new Map<number, string[]>();
  for (const pool of entries) {
    const distance = distances.get(pool);
    if (distance !== undefined) rings.set(distance, [...(rings.get(distance) ?? []), pool]);
  }
  return [...rings].sort(([a], [b]) => a - b).map(([, pools]) => pools);
};

/** A gateway goes on to nearer pools, else to some that are as near as its own, and last by its pool's other gateways. */
const gatewayTiers = (
  world: World,
  { pool, next, family }: { readonly pool: string; readonly next: readonly string[]; readonly family: Carried },
  distances: ReadonlyMap<string, number>,
): string[][] => {
  const own = distances.get(pool);
  if (own === undefined) return [];
  const nearer = next.filter((name) => isBefore(world, distances, { nearer: name, farther: pool, family }));
  const asNear = next.filter((name) => distances.get(name) === own);
  return [nearer, asNear.slice(0, ALTERNATE_POOLS), [pool]];
};

/** Cuts out of every way's block what is here; pods are told apart from the nodes among whose addresses theirs may be. */
const withoutHere = (world: World, local: LocalNode, ways: readonly WayTo[]): WayTo[] => {
  const here = blocksHere(world, local);
  const pods = new Set([...world.sites.values()].flatMap(({ podCidrs }) => podCidrs.map(formatPrefix)));
  const partsOf = ({ prefix, onlyTransit, isLocator }: WayTo): Prefix[] =>
    onlyTransit || isLocator || !here.overlaps(prefix) || pods.has(formatPrefix(prefix))
      ? [prefix]
      : AddressSet.of([prefix]).subtract(here).toPrefixes();
  const parts = new Map<string, WayTo>();
  // A part of several blocks goes the way of the smallest, as if the blocks were whole.
  for (const to of ways.toSorted((a, b) => b.prefix.length - a.prefix.length)) {
    for (const prefix of partsOf(to)) {
      const key = formatPrefix(prefix);
      if (!parts.has(key)) parts.set(key, { ...to, prefix });
    }
  }
  return [...parts.values()];
};

const siteTargets = (world: World, local: LocalNode): Target[] => {
  const { site: ownSite, pool } = local.member;
  const network = networkSites(world, ownSite);
  const { itself, byMates } = servedBy(world, local.member);
  const served = new Set(itself);
  const near = pool === undefined ? meshSites(world, ownSite) : served; // who links with the nodes needs no gateway
  return [...world.sites.values()].map(({ name, podCidrs, nodeCidrs, manageCni }) => ({
    name: `site ${name}`,
    site: name,
    pools: servingPools(world, name),
    routed: manageCni || name !== ownSite,
    mates: byMates.get(name),
    prefixes: [...(near.has(name) ? [] : podCidrs), ...(network.has(name) || served.has(name) ? [] : nodeCidrs)],
  }));
};

/**
 * Locators of sites. Where another CNI plugin connects the pods of a site no links join its workers: between these the frames go by a
 * gateway. Without a locator of its own a node sends and takes none.
 */
const locatorTargets = (world: World, { member }: LocalNode): Target[] => {
  const { site, pool, locator } = member;
  if (!locator) return [];
  const { itself, byMates } = servedBy(world, member);
  const near = pool === undefined ? meshSites(world, site) : new Set(itself);
  if (pool === undefined && world.sites.get(site)?.manageCni === false) near.delete(site);
  return [...world.sites.values()].flatMap(({ name, locatorBlock }): Target[] =>
    locatorBlock && !near.has(name)
      ? [
          {
            name: `locators of site ${name}`,
            site: name,
            pools: servingPools(world, name),
            routed: true,
            mates: byMates.get(name),
            prefixes: [locatorBlock],
            isLocator: true,
          },
        ]
      : [],
  );
};

/**
 * At a gateway, nodes of its own network that it does not serve. It reaches them by the LAN, but what another site sends
 * to them goes on by their own gateways.
 */
const transitTargets = (world: World, { member }: LocalNode): Target[] => {
  if (member.pool === undefined) return [];
  const { itself, byMates } = servedBy(world, member);
  const served = new Set(itself);
  return [...networkSites(world, member.site)]
    .filter((name) => !served.has(name))
    .flatMap((name) => world.sites.get(name) ?? [])
    .map(({ name, nodeCidrs }) => ({
      name: `site ${name}`,
      site: name,
      pools: servingPools(world, name),
      routed: true,
      mates: byMates.get(name),
      prefixes: nodeCidrs,
      onlyTransit: true,
    }));
};

const routedTargets = (world: World, local: LocalNode): Target[] => {
  const routers = new Map<string, { prefix: Prefix; pools: string[] }>();
  for (const { name, routedCidrs } of world.pools.values()) {
    for (const prefix of routedCidrs) {
      const known = routers.get(formatPrefix(prefix)) ?? { prefix, pools: [] };
      routers.set(formatPrefix(prefix), { prefix, pools: [...new Set([...known.pools, name])].sort() });
    }
  }
  const targets = new Map<string, Target & { prefixes: Prefix[] }>();
  for (const { prefix, pools } of routers.values()) {
    if (pools.includes(local.member.pool ?? '')) continue;
    const name = `routed by ${pools.join('+')}`;
    const target = targets.get(name) ?? { name, site: undefined, pools, prefixes: [], routed: true };
    target.prefixes.push(prefix);
    targets.set(name, target);
  }
  return [...targets.values()];
};

/** Where packets leave the node from: its links by pool, and the pools that come next. */
interface Departure {
  readonly pool: string | undefined;
  readonly next: readonly string[];
  readonly links: Readonly<Record<Carried, LinksByPool>>;
}

const departureOf = (world: World, { member }: LocalNode, links: readonly PeerLink[]): Departure => ({
  pool: member.pool,
  next: member.pool === undefined ? servingPools(world, member.site) : peeredPools(world, member.pool),
  links: { 4: linksByPool(links, 4), 6: linksByPool(links, 6), locator: linksByPool(links, 'locator') },
});

interface Candidate extends WayTo {
  readonly distance: number;
}

interface Leg {
  readonly from: Departure;
  readonly target: Target;
  readonly carried: Carried;
}

/** By those gateways of its pool that go on themselves: of two that do not, each would send the packet back. */
const roundMembers = (links: readonly PeerLink[], goesOn: (mate: Member) => boolean): WayMember[] =>
  links.filter(({ peer }) => goesOn(peer)).map((link) => ({ link, tier: ROUND_TIER }));

const gatewayMembers = (
  world: World,
  { from, target, carried, pool }: Leg & { readonly pool: string },
  distances: ReadonlyMap<string, number>,
): WayMember[] => {
  const links = from.links[carried];
  const mates = links.get(pool) ?? [];
  if (target.mates) return roundMembers(mates, ({ name }) => target.mates!.has(name));
  const tiers = gatewayTiers(world, { pool, next: from.next, family: carried }, distances);
  const onward = tiers.flat().filter((name) => name !== pool);
  return onward.some((name) => links.has(name))
    ? tiersToMembers(tiers, links)
    : roundMembers(mates, (mate) => onward.some((name) => canLinkWithPool(world, mate, name, carried)));
};

const membersTo = (world: World, leg: Leg): { members: WayMember[]; distance: number | undefined } => {
  const { from, target, carried } = leg;
  const { pool, next } = from;
  const distances = poolDistances(world, target.pools, carried);
  if (pool !== undefined)
    return { members: gatewayMembers(world, { ...leg, pool }, distances), distance: distances.get(pool) };
  const tiers = workerTiers(next, distances);
  return { members: tiersToMembers(tiers, from.links[carried]), distance: distances.get(tiers[0]?.[0] ?? '') };
};

const waysTo = (world: World, from: Departure, target: Target): Candidate[] =>
  ([4, 6] as const).flatMap((family): Candidate[] => {
    const prefixes = target.prefixes.filter((prefix) => prefix.family === family);
    if (prefixes.length === 0) return [];
    const carried = target.isLocator ? 'locator' : family;
    const { members, distance } = membersTo(world, { from, target, carried });
    if (members.length === 0 || distance === undefined) return [];
    const way: Way = { name: `${target.name} IPv${family}`, family, site: target.site, members };
    const { routed, onlyTransit, isLocator } = target;
    return prefixes.map((prefix) => ({
      ...{ prefix, way, distance, routed },
      ...(onlyTransit ? { onlyTransit } : {}),
      ...(isLocator ? { isLocator } : {}),
    }));
  });

const isSameWay = (a: Way, b: Way): boolean =>
  a.members.length === b.members.length &&
  a.members.every(({ link, tier }, index) => b.members[index]!.link === link && b.members[index]!.tier === tier);

/** Locators go by the group of their site's IPv6 where it has the same members: no group more. */
const withSharedWays = (candidates: readonly Candidate[]): Candidate[] => {
  const ipv6 = new Map(
    candidates.filter(({ way, isLocator }) => way.family === 6 && !isLocator).map(({ way }) => [way.site, way]),
  );
  return candidates.map((candidate) => {
    const way = candidate.isLocator && ipv6.get(candidate.way.site);
    return way && isSameWay(way, candidate.way) ? { ...candidate, way } : candidate;
  });
};

/** Every block behind gateways with the ways there; of two sites with the same block the nearer gets it. */
export const planWays = (world: World, local: LocalNode, links: readonly PeerLink[]): WayTo[] => {
  const targets = [
    ...siteTargets(world, local),
    ...transitTargets(world, local),
    ...routedTargets(world, local),
    ...locatorTargets(world, local),
  ];
  const from = departureOf(world, local, links);
  const best = new Map<string, Candidate>();
  for (const candidate of withSharedWays(targets.flatMap((target) => waysTo(world, from, target)))) {
    const key = formatPrefix(candidate.prefix);
    const known = best.get(key);
    if (!known || candidate.distance < known.distance) best.set(key, candidate);
  }
  return withoutHere(world, local, [...best.values()]);
};
