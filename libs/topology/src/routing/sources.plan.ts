import { AddressSet, containsPrefix, formatPrefix, type Prefix } from '@unbounded/ip';
import { isBefore, poolDistances, servedSites } from './distances.ts';
import type { Echoes } from '../links/echoes.plan.ts';
import type { PeerLink } from '../links/links.plan.ts';
import type { LocalNode } from '../links/local-node.ts';
import type { Path } from './paths.plan.ts';
import type { TunnelPeer, UnencryptedTunnel } from '../plan.ts';
import { peeredPools } from '../world/reach.ts';
import type { SiteModel, World } from '../world/world.ts';

/** Whose packets may come from which gateway: all that lead to it, and more, because ways there and back may differ. */

const servedModels = (world: World, pool: string): SiteModel[] =>
  servedSites(world, pool).flatMap((name) => world.sites.get(name) ?? []);

/** Blocks of locators that a pool brings into the network. */
const locatorsOf = (world: World, pool: string): Prefix[] =>
  servedModels(world, pool).flatMap(({ locatorBlock }) => locatorBlock ?? []);

/** Blocks of pods and nodes that a pool brings into the network: of the sites it serves, and beyond. */
const blocksOf = (world: World, pool: string): Prefix[] => {
  const sites = servedModels(world, pool);
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
    for (const family of [4, 6, 'locator'] as const) {
      const ours =
        family === 'locator' ? locatorsOf(world, entry) : blocks.filter((prefix) => prefix.family === family);
      if (ours.length === 0) continue;
      const distances = poolDistances(world, [entry], family);
      for (const peer of peers)
        if (isBefore(world, distances, { nearer: peer, farther: own, family })) brought.get(peer)!.push(...ours);
    }
  }
  return brought;
};

export interface Sources {
  /** Blocks that may come over a link. */
  over(link: PeerLink): readonly Prefix[];
  /** Peers of unencrypted tunnels, and whose packets each may bring, where nothing but addresses can tell. */
  tunnels(): readonly TunnelPeer[];
}

const leadsOver = ({ via }: Path, link: PeerLink): boolean =>
  'direct' in via ? via.direct === link : via.way.members.some((member) => member.link === link);

/**
 * The blocks of paths over each link without those inside them that have a path of their own, by which they come: who
 * routes 10.0.0.0/8 brings no pod of a peer in it.
 */
const ownBlocks = (paths: readonly Path[], links: readonly PeerLink[]): ReadonlyMap<PeerLink, Prefix[]> => {
  const blocks = new Map<PeerLink, Prefix[]>(links.map((link) => [link, []]));
  for (const [index, path] of paths.entries()) {
    const inside: Path[] = [];
    for (let next = index + 1; next < paths.length && containsPrefix(path.prefix, paths[next]!.prefix); next++)
      inside.push(paths[next]!);
    const over = 'direct' in path.via ? [path.via.direct] : path.via.way.members.map(({ link }) => link);
    for (const link of over.filter((one) => blocks.has(one))) {
      const others = inside.filter((other) => !leadsOver(other, link)).map(({ prefix }) => prefix);
      const whole = AddressSet.of([path.prefix]);
      blocks
        .get(link)!
        .push(...(others.length === 0 ? [path.prefix] : whole.subtract(AddressSet.of(others)).toPrefixes()));
    }
  }
  return blocks;
};

const isUnencrypted = ({ protocol }: PeerLink): boolean => protocol !== 'WireGuard' && protocol !== 'None';

interface SourceWays {
  readonly links: readonly PeerLink[];
  readonly paths: readonly Path[];
  readonly echoes: Pick<Echoes, 'over'>;
}

export const planSources = (world: World, local: LocalNode, { links, paths, echoes }: SourceWays): Sources => {
  const leading = new Map<string, Prefix[]>(links.map(({ peer }) => [peer.name, []]));
  for (const { prefix, via } of paths) {
    if ('direct' in via) leading.get(via.direct.peer.name)!.push(prefix);
    else for (const { link } of via.way.members) leading.get(link.peer.name)!.push(prefix);
  }
  const { pool } = local.member;
  const brought = pool === undefined ? new Map<string, Prefix[]>() : broughtByPools(world, pool);
  const own = pool === undefined ? [] : [...blocksOf(world, pool), ...locatorsOf(world, pool)]; // what another gateway of the pool hands over
  const more = ({ role, peer }: PeerLink): readonly Prefix[] => {
    if (role === 'pool') return own;
    return role === 'peered' ? brought.get(peer.pool!)! : [];
  };
  const bringsMore = (link: PeerLink): boolean => {
    const back = new Set(leading.get(link.peer.name)!.map(formatPrefix));
    return more(link).some((prefix) => !back.has(formatPrefix(prefix)));
  };
  const isTransit = (link: PeerLink): boolean => link.role === 'pool' || bringsMore(link);
  const over = (link: PeerLink): Prefix[] => [...leading.get(link.peer.name)!, ...more(link), ...echoes.over(link)];
  const tunnels = (): TunnelPeer[] => {
    const open = links.filter(isUnencrypted);
    const blocks = ownBlocks(paths, open);
    const { podCidrs, locator } = local.member;
    const home = AddressSet.of([...podCidrs, ...(locator ? [locator] : [])]); // what is here comes from nobody, but for echoes
    const found = open.map((link): TunnelPeer => {
      const { peer, protocol, mtuBytes, external: isExternal } = link;
      const sources = AddressSet.of(isTransit(link) ? over(link) : blocks.get(link)!).subtract(home);
      return {
        ...{ node: peer.name, protocol: protocol as UnencryptedTunnel, remoteIp: link.remoteIp!, mtuBytes },
        sources: [...sources.toPrefixes(), ...echoes.over(link)].map(formatPrefix),
        ...{ isTransit: isTransit(link), isExternal },
      };
    });
    return found.sort((a, b) => (a.node < b.node ? -1 : 1));
  };
  return { over, tunnels };
};
