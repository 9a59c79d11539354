import type { TunnelProtocol } from '@unbounded/crds';
import type { Family } from '@unbounded/ip';
import type { LocalNode } from './local-node.ts';
import type { HealthSettings } from '../world/health-settings.ts';
import { withCarriedLocator } from './locator-links.ts';
import { overheadBytes, resolveProtocol } from './protocol.ts';
import { isUsable } from '../world/usable.ts';
import { isRelayed } from './relayed.ts';
import { assignedSites, meshSites, peeredPools, poolsOfSite } from '../world/reach.ts';
import { healthOf, scopesOf } from './scopes.ts';
import { type Underlay, underlayByRelay, underlayOf } from './underlay.ts';
import type { LinkScope, Member, World } from '../world/world.ts';
import type { Problem } from '../world/problem.ts';

/** mesh: node to node; toGateway: a worker's link to a gateway; toWorker: its other end; pool: gateways of one pool; peered: of two. */
type LinkRole = 'mesh' | 'toGateway' | 'toWorker' | 'pool' | 'peered';

/** One link to one peer. */
export interface PeerLink {
  readonly peer: Member;
  readonly role: LinkRole;
  readonly protocol: TunnelProtocol;
  readonly sameSite: boolean;
  readonly external: boolean;
  /** Family of the addresses over which the link runs. */
  readonly family: Family;
  /** Our own address in the underlay at which the peer calls; undefined: we call it. */
  readonly localIp: string | undefined;
  /** Address of the peer in the underlay; undefined: it finds us. */
  readonly remoteIp: string | undefined;
  /** What the objects and the underlay's device leave for a packet in the tunnel: the MTU of the tunnel's device. */
  readonly mtuBytes: number;
  /** The same, and not more than the path was seen to carry: the MTU of routes over the link. */
  readonly routeMtuBytes: number;
  readonly health: HealthSettings;
}

/** Whether a peer announces a key of the node itself, which knows best whose it is. */
const hasKeyOf = (peer: Member, { publicKey, nextPublicKey }: Member): boolean =>
  peer.publicKey !== undefined && (peer.publicKey === publicKey || peer.publicKey === nextPublicKey);

/** Peers with the role of the link to them, from the local node's side. */
const peersOf = (world: World, local: Member): (readonly [Member, LinkRole])[] => {
  const others = (members: readonly Member[]): Member[] =>
    members.filter((m) => m.name !== local.name && isUsable(m) && !hasKeyOf(m, local));
  if (local.pool === undefined) {
    const mesh = meshSites(world, local.site);
    // Inside a site with another CNI plugin that one connects the pods.
    if (world.sites.get(local.site)?.manageCni === false) mesh.delete(local.site);
    const gateways = poolsOfSite(world, local.site).flatMap((pool) => world.pools.get(pool)!.gateways);
    return [
      ...others(world.workers.filter((m) => mesh.has(m.site))).map((m) => [m, 'mesh'] as const),
      ...others(gateways).map((m) => [m, 'toGateway'] as const),
    ];
  }
  const served = assignedSites(world, local.pool);
  const peered = peeredPools(world, local.pool).flatMap((pool) => world.pools.get(pool)!.gateways);
  return [
    ...others(world.workers.filter((m) => served.has(m.site))).map((m) => [m, 'toWorker'] as const),
    ...others(world.pools.get(local.pool)?.gateways ?? []).map((m) => [m, 'pool'] as const),
    ...others(peered).map((m) => [m, 'peered'] as const),
  ];
};

type Protocol = {
  readonly protocol: TunnelProtocol;
  readonly underlay: Underlay;
  readonly scopes: readonly LinkScope[];
};

/** How a link is carried; undefined, with a problem, when it cannot be. Both ends come to the same. */
const carriageOf = (world: World, own: Member, peer: Member, problems: Problem[]): Protocol | undefined => {
  const name = [own.name, peer.name].sort().join(' - ');
  const underlay =
    underlayOf(world, own, peer) ?? (isRelayed(world, own, peer) ? underlayByRelay(own, peer) : undefined);
  if (!underlay) {
    const message = `link ${name}: neither end has an address at which the other could call it: give a gateway of an External pool an external address of a family that both ends have, join the sites by a SitePeering, or let the Mesh name a relay, which joins by WireGuard what nothing else joins`;
    problems.push({ reason: 'NoEndpoint', message });
    return undefined;
  }
  const scopes = scopesOf(world, own, peer);
  const sameSite = own.site === peer.site;
  const abilities = [own.protocols, peer.protocols] as const;
  const { external, family } = underlay;
  const inner = new Set([...own.podCidrs, ...peer.podCidrs].map((block) => block.family));
  const resolution = resolveProtocol({ name, sameSite, external, family, inner, scopes, abilities });
  problems.push(...resolution.problems);
  const { protocol } = resolution;
  if (protocol !== 'WireGuard' && !(underlay.localIp && underlay.remoteIp)) {
    const message = `link ${name} has no address to send ${protocol} to: give the gateway an external address or let the link be WireGuard`;
    problems.push({ reason: 'NoEndpoint', message });
    return undefined;
  }
  return { protocol, underlay, scopes };
};

const keyProblems = (world: World, own: Member): Problem[] =>
  [...world.workers, ...[...world.pools.values()].flatMap(({ gateways }) => gateways)]
    .filter((member) => member.name !== own.name && hasKeyOf(member, own))
    .map(({ name, publicKey }) => ({
      reason: 'DuplicateKey',
      message: `node ${name} announces the WireGuard public key ${publicKey}, which belongs to node ${own.name}: node ${name} gets no links; delete /etc/wireguard/server.priv on node ${name} and restart its agent`,
    }));

/** Every link of the node, by role and peer. */
export const planLinks = (world: World, local: LocalNode): { links: PeerLink[]; problems: Problem[] } => {
  const own = local.member;
  const problems = keyProblems(world, own);
  const links = peersOf(world, own).flatMap(([peer, role]): PeerLink[] => {
    const carriage = carriageOf(world, own, peer, problems);
    if (!carriage) return [];
    const { protocol, underlay, scopes } = carriage;
    const limits = scopes.flatMap(({ mtuBytes }) => mtuBytes ?? []);
    const mtuBytes = Math.min(local.underlayMtuBytes - overheadBytes(protocol, underlay.family), ...limits);
    const routeMtuBytes = Math.min(mtuBytes, local.pathMtuBytes?.get(peer.name) ?? mtuBytes);
    const sameSite = own.site === peer.site;
    const link = { peer, role, protocol, sameSite, ...underlay, mtuBytes, routeMtuBytes, health: healthOf(scopes) };
    return [withCarriedLocator(own, link, problems)];
  });
  return { links, problems };
};
