import type { TunnelProtocol } from '@unbounded/crds';
import { assignedSites, meshSites, networkSites, peeredPools, poolsOfSite } from './reach.ts';
import { OVERHEAD_BYTES, resolveProtocol } from './protocol.ts';
import type { LinkScope, Member, Problem, World } from './world.ts';

/** The node for which a plan is made: what it knows of itself, besides what the objects say. */
export interface LocalNode {
  readonly member: Member;
  /** MTU of the device that leads to the underlay, bytes. */
  readonly underlayMtuBytes: number;
}

/** mesh: node to node; toGateway: a worker's link to a gateway; toWorker: its other end; pool: gateways of one pool; peered: of two. */
export type LinkRole = 'mesh' | 'toGateway' | 'toWorker' | 'pool' | 'peered';

/** One link to one peer. */
export interface PeerLink {
  readonly peer: Member;
  readonly role: LinkRole;
  readonly protocol: TunnelProtocol;
  readonly sameSite: boolean;
  readonly external: boolean;
  /** Address of the peer in the underlay; undefined: it finds us. */
  readonly remoteIp: string | undefined;
  readonly mtuBytes: number;
}

const isUsable = (member: Member): boolean => member.publicKey !== undefined && member.podCidrs.length > 0;

/** Peers with the role of the link to them, from the local node's side. */
const peersOf = (world: World, local: Member): (readonly [Member, LinkRole])[] => {
  const others = (members: readonly Member[]): Member[] => members.filter((m) => m.name !== local.name && isUsable(m));
  if (local.pool === undefined) {
    const mesh = meshSites(world, local.site);
    const gateways = poolsOfSite(world, local.site).flatMap((pool) => world.pools.get(pool)!.gateways);
    return [
      ...others(world.workers)
        .filter((m) => mesh.has(m.site) && m.internalIps.length > 0)
        .map((m) => [m, 'mesh'] as const),
      ...others(gateways).map((m) => [m, 'toGateway'] as const),
    ];
  }
  const served = assignedSites(world, local.pool);
  const peered = peeredPools(world, local.pool).flatMap((pool) => world.pools.get(pool)!.gateways);
  return [
    ...others(world.workers)
      .filter((m) => served.has(m.site))
      .map((m) => [m, 'toWorker'] as const),
    ...others(world.pools.get(local.pool)?.gateways ?? []).map((m) => [m, 'pool'] as const),
    ...others(peered).map((m) => [m, 'peered'] as const),
  ];
};

/** The objects that govern a link (design decision 6), the same seen from either end. */
const scopesOf = (world: World, a: Member, b: Member): LinkScope[] => {
  const sites = [...new Set([a.site, b.site])].flatMap((name) => world.sites.get(name)?.scope ?? []);
  const pools = [...new Set([a.pool, b.pool])].flatMap((name) =>
    name === undefined ? [] : (world.pools.get(name)?.scope ?? []),
  );
  if (a.pool !== undefined && b.pool !== undefined) {
    const peerings =
      a.pool === b.pool ? [] : world.poolPeerings.filter(({ members }) => members.has(a.pool!) && members.has(b.pool!));
    return [...sites, ...pools, ...peerings.map(({ scope }) => scope)];
  }
  if (a.pool === undefined && b.pool === undefined) {
    const peerings =
      a.site === b.site ? [] : world.sitePeerings.filter(({ members }) => members.has(a.site) && members.has(b.site));
    return [...sites, ...peerings.map(({ scope }) => scope)];
  }
  const [worker, gateway] = a.pool === undefined ? [a, b] : [b, a];
  const assignments = world.assignments.filter(
    ({ members, pools: named }) => members.has(worker.site) && named.has(gateway.pool!),
  );
  return [...sites, ...pools, ...assignments.map(({ scope }) => scope)];
};

const remoteIpOf = (world: World, peer: Member, internal: boolean): string | undefined => {
  if (internal) return peer.internalIps[0];
  // Only gateways of External pools can be called from elsewhere; all others call.
  return peer.pool !== undefined && world.pools.get(peer.pool)?.external ? peer.externalIps[0] : undefined;
};

/** Every link of the node, by role and peer. */
export const planLinks = (world: World, local: LocalNode): { links: PeerLink[]; problems: Problem[] } => {
  const own = local.member;
  const network = networkSites(world, own.site);
  const problems: Problem[] = [];
  const links = peersOf(world, own).flatMap(([peer, role]): PeerLink[] => {
    const internal = network.has(peer.site);
    const scopes = scopesOf(world, own, peer);
    const name = [own.name, peer.name].sort().join(' - ');
    const { protocol, problems: found } = resolveProtocol({
      name,
      sameSite: own.site === peer.site,
      external: !internal,
      scopes,
      abilities: [own.protocols, peer.protocols],
    });
    problems.push(...found);
    const remoteIp = remoteIpOf(world, peer, internal);
    if (remoteIp === undefined && protocol !== 'WireGuard') {
      problems.push({
        reason: 'NoEndpoint',
        message: `link ${name} has no address to send ${protocol} to: give the gateway an external address or let the link be WireGuard`,
      });
      return [];
    }
    const limits = scopes.flatMap(({ mtuBytes }) => mtuBytes ?? []);
    const mtuBytes = Math.min(local.underlayMtuBytes - OVERHEAD_BYTES[protocol], ...limits);
    return [{ peer, role, protocol, sameSite: own.site === peer.site, external: !internal, remoteIp, mtuBytes }];
  });
  return { links, problems };
};
