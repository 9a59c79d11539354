import { MESH_WIREGUARD_PORT } from '@unbounded/crds';
import { formatPrefix, type Prefix, withoutCovered } from '@unbounded/ip';
import type { LocalNode, PeerLink } from './links.ts';
import type { Sources } from './sources.plan.ts';
import type { Problem } from './world.ts';

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
  local: LocalNode,
  links: readonly PeerLink[],
  sources: Sources,
): { interfaces: WireGuardInterfacePlan[]; problems: Problem[] } => {
  const problems: Problem[] = [];
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
    known.peers.push(peerPlan(link, ports, sources.over(link)));
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
