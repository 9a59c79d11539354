import { MESH_WIREGUARD_PORT } from '@unbounded/crds';
import { formatPrefix, type Prefix, withoutCovered } from '@unbounded/ip';
import type { LocalNode, PeerLink } from './links.ts';
import type { Path } from './paths.plan.ts';
import { servedSites } from './distances.ts';
import type { Problem, World } from './world.ts';

/** Seconds; keeps a NAT's mapping, whose shortest usual life is 30 s. */
const KEEPALIVE_SECONDS = 25;

export interface WireGuardPeerPlan {
  readonly node: string;
  readonly publicKey: string;
  /** Absent: the peer finds us. */
  readonly endpoint?: string;
  readonly allowedIps: readonly string[];
  readonly persistentKeepaliveSeconds?: number;
}

export interface WireGuardInterfacePlan {
  readonly name: string;
  readonly listenPort: number;
  readonly mtuBytes: number;
  readonly peers: readonly WireGuardPeerPlan[];
}

/** Ports of a link, and so its interface: a gateway's mesh port faces its workers, its own port all other gateways. */
interface Ports {
  readonly listen: number;
  readonly remote: number;
}

const portsOf = (local: LocalNode, link: PeerLink): Ports | undefined => {
  switch (link.role) {
    case 'mesh':
      return { listen: MESH_WIREGUARD_PORT, remote: MESH_WIREGUARD_PORT };
    case 'toGateway':
      return link.peer.gatewayPort === undefined
        ? undefined
        : { listen: link.peer.gatewayPort, remote: MESH_WIREGUARD_PORT };
    case 'toWorker':
      return local.member.gatewayPort === undefined
        ? undefined
        : { listen: MESH_WIREGUARD_PORT, remote: local.member.gatewayPort };
    case 'pool':
    case 'peered': // crossed: each end listens on the other's port, so that both know it without asking
      return link.peer.gatewayPort === undefined || local.member.gatewayPort === undefined
        ? undefined
        : { listen: link.peer.gatewayPort, remote: local.member.gatewayPort };
  }
};

/** The interface that carries a link; undefined while a gateway has no port yet, or when the link is not WireGuard. */
export const wireGuardInterfaceOf = (local: LocalNode, link: PeerLink): string | undefined => {
  const ports = link.protocol === 'WireGuard' ? portsOf(local, link) : undefined;
  return ports && `wg${ports.listen}`;
};

/** Blocks whose packets the peer may send us, by peer: what leads to it, and between gateways of a pool what detours. */
const allowedPrefixes = (paths: readonly Path[]): ReadonlyMap<string, Prefix[]> => {
  const byPeer = new Map<string, Prefix[]>();
  const add = (peer: string, prefix: Prefix): void => {
    const known = byPeer.get(peer);
    if (known) known.push(prefix);
    else byPeer.set(peer, [prefix]);
  };
  for (const { prefix, via } of paths) {
    if ('direct' in via) add(via.direct.peer.name, prefix);
    else for (const { link } of via.way.members) add(link.peer.name, prefix);
  }
  return byPeer;
};

/** Sources of packets that another gateway of the pool hands over while its own way on is cut, besides what is elsewhere. */
const detouredSources = (world: World, local: LocalNode): Prefix[] => {
  const pool = world.pools.get(local.member.pool ?? '');
  if (!pool) return [];
  const sites = servedSites(world, pool.name).flatMap((name) => world.sites.get(name) ?? []);
  return [...sites.flatMap(({ podCidrs, nodeCidrs }) => [...podCidrs, ...nodeCidrs]), ...pool.routedCidrs];
};

const endpointText = (ip: string, port: number): string => (ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`);

const peerPlan = (link: PeerLink, ports: Ports, allowed: readonly Prefix[]): WireGuardPeerPlan => {
  // Who has no address that the other end could call keeps the way open from its side.
  const calls = link.external && link.localIp === undefined;
  return {
    node: link.peer.name,
    publicKey: link.peer.publicKey!,
    ...(link.remoteIp === undefined ? {} : { endpoint: endpointText(link.remoteIp, ports.remote) }),
    allowedIps: withoutCovered(allowed).map(formatPrefix),
    ...(calls ? { persistentKeepaliveSeconds: KEEPALIVE_SECONDS } : {}),
  };
};

/** The WireGuard interfaces, by name; within one no prefix stands at two peers, and a key stands on one interface. */
export const planWireGuard = (
  world: World,
  local: LocalNode,
  links: readonly PeerLink[],
  paths: readonly Path[],
): { interfaces: WireGuardInterfacePlan[]; problems: Problem[] } => {
  const problems: Problem[] = [];
  const allowed = allowedPrefixes(paths);
  const detoured = detouredSources(world, local);
  const interfaces = new Map<number, { mtuBytes: number; peers: WireGuardPeerPlan[] }>();
  for (const link of links.filter(({ protocol }) => protocol === 'WireGuard')) {
    const ports = portsOf(local, link);
    if (!ports) {
      problems.push({
        reason: 'GatewayPortMissing',
        message: `the link to ${link.peer.name} waits until its gateway has a port (GatewayPool status)`,
      });
      continue;
    }
    const known = interfaces.get(ports.listen) ?? { mtuBytes: link.mtuBytes, peers: [] };
    const own = allowed.get(link.peer.name) ?? [];
    known.peers.push(peerPlan(link, ports, link.role === 'pool' ? [...own, ...detoured] : own));
    interfaces.set(ports.listen, { mtuBytes: Math.min(known.mtuBytes, link.mtuBytes), peers: known.peers });
  }
  const sorted = [...interfaces].sort(([a], [b]) => a - b);
  return {
    interfaces: sorted.map(([port, { mtuBytes, peers }]) => ({
      name: `wg${port}`,
      listenPort: port,
      mtuBytes,
      peers: peers.sort((a, b) => (a.publicKey < b.publicKey ? -1 : 1)),
    })),
    problems,
  };
};
