import { formatPrefix, type Prefix, withoutCovered } from '@unbounded/ip';
import { isEstablished, type Lane, lanesOf, sendingLane } from './lanes.ts';
import type { PeerLink } from './links.plan.ts';
import type { WireGuardInterfacePlan, WireGuardPeerPlan } from '../plan.ts';
import type { LocalNode } from './local-node.ts';
import type { RelayModel } from '../world/relay-model.ts';
import type { Problem } from '../world/problem.ts';

/** Seconds; keeps a NAT's mapping, whose shortest usual life is 30 s. */
const KEEPALIVE_SECONDS = 25;

const endpointText = (ip: string, port: number): string => (ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`);

/**
 * Who has no address that the other end could call keeps the way open from its side. A lane of a key that follows is
 * called until it is established; those that are not sent by are silent then, so that whatever still comes over a lane of
 * an old key is somebody's traffic.
 */
const isKeptAlive = (local: LocalNode, link: PeerLink, lane: Lane, sending: Lane): boolean => {
  const calls = link.external && link.localIp === undefined;
  if (lane === sending) return calls;
  const calledByPeerOnly = link.remoteIp === undefined && link.localIp !== undefined;
  return !lane.isCurrent && !calledByPeerOnly && !isEstablished(local, lane);
};

/** The links that are WireGuard, with their lanes and the prefixes that may come over them. */
const peersOf = (
  local: LocalNode,
  link: PeerLink,
  { allowed, relay }: { readonly allowed: readonly Prefix[]; readonly relay: RelayModel | undefined },
): { readonly lane: Lane; readonly peer: WireGuardPeerPlan }[] => {
  const lanes = lanesOf(local, link);
  const sending = sendingLane(local, lanes);
  const allowedIps = withoutCovered(allowed).map(formatPrefix);
  return lanes.map((lane) => ({
    lane,
    peer: {
      node: link.peer.name,
      publicKey: lane.peerKey,
      ...(link.remoteIp === undefined ? {} : { endpoint: endpointText(link.remoteIp, lane.remotePort) }),
      ...(relay && link.external ? { relay: relay.peer } : {}),
      allowedIps,
      ...(isKeptAlive(local, link, lane, sending!) ? { persistentKeepaliveSeconds: KEEPALIVE_SECONDS } : {}),
    },
  }));
};

interface Draft {
  readonly lane: Lane;
  readonly mtuBytes: number;
  readonly peers: WireGuardPeerPlan[];
}

/**
 * The WireGuard interfaces, by port. Within one no prefix stands at two peers; a key stands on one interface, or on two
 * while our own key is exchanged.
 */
export const planWireGuard = (
  local: LocalNode,
  links: readonly PeerLink[],
  {
    allowedOver,
    relay,
  }: { readonly allowedOver: (link: PeerLink) => readonly Prefix[]; readonly relay: RelayModel | undefined },
): { interfaces: WireGuardInterfacePlan[]; problems: Problem[] } => {
  const problems: Problem[] = [];
  const interfaces = new Map<number, Draft>();
  for (const link of links.filter(({ protocol }) => protocol === 'WireGuard')) {
    const peers = peersOf(local, link, { allowed: allowedOver(link), relay });
    if (peers.length === 0) {
      const message = `the link to ${link.peer.name} waits until its gateway has a port (GatewayPool status)`;
      problems.push({ reason: 'GatewayPortMissing', message });
    }
    for (const { lane, peer } of peers) {
      const known = interfaces.get(lane.listenPort) ?? { lane, mtuBytes: link.mtuBytes, peers: [] };
      known.peers.push(peer);
      interfaces.set(lane.listenPort, { ...known, mtuBytes: Math.min(known.mtuBytes, link.mtuBytes) });
    }
  }
  const sorted = [...interfaces.values()].sort((a, b) => a.lane.listenPort - b.lane.listenPort);
  return {
    interfaces: sorted.map(({ lane, mtuBytes, peers }) => ({
      name: lane.device,
      listenPort: lane.listenPort,
      mtuBytes,
      ...(lane.ownGeneration === 0 ? {} : { keyGeneration: lane.ownGeneration }),
      peers: peers.sort((a, b) => (a.publicKey < b.publicKey ? -1 : 1)),
    })),
    problems,
  };
};
