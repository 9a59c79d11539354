import { comparePrefixes, formatPrefix, hostPrefix, parseAddress, type Prefix } from '@unbounded/ip';
import type { LocalNode, PeerLink } from './links.ts';
import {
  assignedSites,
  meshSites,
  networkSites,
  peeredPools,
  poolsOfSite,
  type Reached,
  reachThrough,
} from './reach.ts';
import type { World } from './world.ts';

/** Which link or links a block of addresses is reached by. */
export interface Path {
  readonly prefix: Prefix;
  /** direct: the peer's own blocks. group: any of the links leads there; named so that it keeps its identity. */
  readonly via: { readonly direct: PeerLink } | { readonly group: string; readonly links: readonly PeerLink[] };
}

const hostPrefixes = (addresses: readonly string[]): Prefix[] =>
  addresses.map((text) => hostPrefix(parseAddress(text)));

/** A peer's own blocks; a gateway also reaches the nodes themselves of a site that shares no network with it. */
const directPaths = (links: readonly PeerLink[]): Path[] =>
  links.flatMap((link) => {
    const nodeAddresses = link.role === 'toWorker' && link.external ? hostPrefixes(link.peer.internalIps) : [];
    return [...link.peer.podCidrs, ...nodeAddresses].map((prefix) => ({ prefix, via: { direct: link } }));
  });

/** The pools that a node's traffic to elsewhere enters first, and those that it must not come back to. */
const entryPools = (world: World, local: LocalNode): { entries: string[]; not: ReadonlySet<string> } => {
  const { pool, site } = local.member;
  return pool === undefined
    ? { entries: poolsOfSite(world, site), not: new Set() }
    : { entries: peeredPools(world, pool), not: new Set([pool]) };
};

/** Whether a block behind a pool is reached that way, or lies here, or is reached more directly. */
const isElsewhere = (world: World, local: LocalNode): ((reached: Reached) => boolean) => {
  const { site, pool } = local.member;
  const mesh = meshSites(world, site);
  const network = networkSites(world, site);
  const served = pool === undefined ? new Set<string>() : assignedSites(world, pool);
  const ownRouted = new Set((pool === undefined ? [] : (world.pools.get(pool)?.routedCidrs ?? [])).map(formatPrefix));
  return ({ kind, site: of, prefix }) => {
    if (of === undefined) return !ownRouted.has(formatPrefix(prefix)); // a gateway's own routed blocks leave by its own routes
    if (served.has(of)) return false;
    return kind === 'PodCidr' ? !mesh.has(of) : !network.has(of);
  };
};

/** Blocks behind gateways: each by the gateways of the pools that are nearest to it. */
const groupPaths = (world: World, local: LocalNode, links: readonly PeerLink[]): Path[] => {
  const { entries, not } = entryPools(world, local);
  const elsewhere = isElsewhere(world, local);
  const usable = new Map(
    entries.map((pool) => [
      pool,
      links.filter((l) => l.peer.pool === pool && (l.role === 'toGateway' || l.role === 'peered')),
    ]),
  );
  const best = new Map<string, { prefix: Prefix; distance: number; pools: string[] }>();
  for (const pool of entries.filter((name) => usable.get(name)!.length > 0)) {
    for (const reached of reachThrough(world, pool, not).filter(elsewhere)) {
      const key = formatPrefix(reached.prefix);
      const known = best.get(key);
      if (!known || reached.distance < known.distance)
        best.set(key, { prefix: reached.prefix, distance: reached.distance, pools: [pool] });
      else if (reached.distance === known.distance && !known.pools.includes(pool)) known.pools.push(pool);
    }
  }
  return [...best.values()].map(({ prefix, pools }) => {
    const names = pools.toSorted();
    return { prefix, via: { group: names.join('+'), links: names.flatMap((pool) => usable.get(pool)!) } };
  });
};

/** All paths of the node, in the order of their prefixes; a peer's own block wins over the same block behind a gateway. */
export const planPaths = (world: World, local: LocalNode, links: readonly PeerLink[]): Path[] => {
  const direct = directPaths(links);
  const taken = new Set(direct.map(({ prefix }) => formatPrefix(prefix)));
  const own = new Set(local.member.podCidrs.map(formatPrefix));
  const groups = groupPaths(world, local, links).filter(({ prefix }) => !taken.has(formatPrefix(prefix)));
  return [...direct, ...groups]
    .filter(({ prefix }) => !own.has(formatPrefix(prefix)))
    .sort((a, b) => comparePrefixes(a.prefix, b.prefix));
};
