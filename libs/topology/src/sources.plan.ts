import { formatPrefix, type Prefix } from '@unbounded/ip';
import { poolDistances, servedSites } from './distances.ts';
import type { LocalNode, PeerLink } from './links.ts';
import type { Path } from './paths.plan.ts';
import { peeredPools } from './reach.ts';
import type { World } from './world.ts';

/** Whose packets may come from which gateway: all that lead to it, and more, because ways there and back may differ. */

/** Blocks that a pool brings into the network: of the sites it serves, and beyond. */
const blocksOf = (world: World, pool: string): Prefix[] => {
  const sites = servedSites(world, pool).flatMap((name) => world.sites.get(name) ?? []);
  const routed = world.pools.get(pool)?.routedCidrs ?? [];
  return [...sites.flatMap(({ podCidrs, nodeCidrs }) => [...podCidrs, ...nodeCidrs]), ...routed];
};

/**
 * For a gateway: blocks whose packets gateways of each peered pool may bring. A worker that cannot use the nearest of
 * its pools enters by another, from where packets take the shortest way on; so a block may come from every neighbour
 * that is on a shortest way from any pool that brings it in to ours, even if we serve its site ourselves.
 */
const broughtByPools = (world: World, own: string): ReadonlyMap<string, Prefix[]> => {
  const peers = peeredPools(world, own);
  const brought = new Map<string, Prefix[]>(peers.map((name) => [name, []]));
  for (const entry of [...world.pools.keys()].filter((name) => name !== own)) {
    const blocks = blocksOf(world, entry);
    for (const family of [4, 6] as const) {
      const ours = blocks.filter((prefix) => prefix.family === family);
      if (ours.length === 0) continue;
      const distances = poolDistances(world, [entry], family);
      const before = (distances.get(own) ?? Number.NaN) - 1; // not reached: no neighbour is before us
      for (const peer of peers) if (distances.get(peer) === before) brought.get(peer)!.push(...ours);
    }
  }
  return brought;
};

export interface Sources {
  /** Blocks that may come over a link. */
  over(link: PeerLink): readonly Prefix[];
  /** Underlay addresses of the unencrypted tunnels over which more may come than what leads back over them. */
  readonly forwarders: readonly string[];
}

export const planSources = (
  world: World,
  local: LocalNode,
  links: readonly PeerLink[],
  paths: readonly Path[],
): Sources => {
  const leading = new Map<string, Prefix[]>(links.map(({ peer }) => [peer.name, []]));
  for (const { prefix, via } of paths) {
    if ('direct' in via) leading.get(via.direct.peer.name)!.push(prefix);
    else for (const { link } of via.way.members) leading.get(link.peer.name)!.push(prefix);
  }
  const { pool } = local.member;
  const brought = pool === undefined ? new Map<string, Prefix[]>() : broughtByPools(world, pool);
  const own = pool === undefined ? [] : blocksOf(world, pool); // what another gateway of the pool hands over
  const more = ({ role, peer }: PeerLink): readonly Prefix[] => {
    if (role === 'pool') return own;
    return role === 'peered' ? brought.get(peer.pool!)! : [];
  };
  const bringsMore = (link: PeerLink): boolean => {
    const back = new Set(leading.get(link.peer.name)!.map(formatPrefix));
    return more(link).some((prefix) => !back.has(formatPrefix(prefix)));
  };
  const forwarders = links.filter(
    (link) => link.protocol !== 'WireGuard' && link.protocol !== 'None' && (link.role === 'pool' || bringsMore(link)),
  );
  return {
    over: (link) => [...leading.get(link.peer.name)!, ...more(link)],
    forwarders: forwarders.flatMap(({ remoteIp }) => remoteIp ?? []).sort(),
  };
};
