import { KEY_GENERATION_PORTS, MESH_WIREGUARD_PORT } from '@unbounded/crds';
import type { PeerLink } from './links.plan.ts';
import type { LocalNode } from './local-node.ts';
import type { Member } from '../world/world.ts';

/** Names a lane at one end: its interface, and the key of the peer there. */
export const laneId = (device: string, peerPublicKey: string): string => `${device} ${peerPublicKey}`;

/**
 * A WireGuard link has a lane for each pair of keys, one of either end: a single one at rest, and up to four while the
 * ends exchange their keys. WireGuard has one private key for an interface, and allows a prefix at one peer of it only, so
 * a lane has an interface and ports of its own at both ends. They follow from whether the generations of the two keys are
 * even or odd: keys two generations apart are never in use together. All lanes take what comes; packets are sent by the
 * newest that both ends are known to have.
 */
export interface Lane {
  /** `wg` and the port. */
  readonly device: string;
  readonly listenPort: number;
  /** Where the peer listens for us. */
  readonly remotePort: number;
  /** Generations of the two ends' keys. */
  readonly ownGeneration: number;
  readonly peerGeneration: number;
  readonly peerKey: string;
  /** Of the keys that the ends have now, as every link has one: not of a key that follows. */
  readonly isCurrent: boolean;
}

interface Ports {
  readonly listen: number;
  readonly remote: number;
}

/** Ports of a link whose keys are both even: a gateway's mesh port faces its workers, its own port all other gateways. */
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

/** What is added to a port at the end whose key is of generation `own`. */
const portShift = (own: number, peer: number): number => KEY_GENERATION_PORTS * (2 * (own % 2) + (peer % 2));

const keysOf = ({ publicKey, keyGeneration, nextPublicKey }: Member): { generation: number; key: string }[] => [
  { generation: keyGeneration, key: publicKey ?? '' },
  ...(nextPublicKey === undefined ? [] : [{ generation: keyGeneration + 1, key: nextPublicKey }]),
];

/** The lanes of a link, that of the current keys first; none while a gateway has no port yet, or when it is not WireGuard. */
export const lanesOf = (local: LocalNode, link: PeerLink): Lane[] => {
  const ports = link.protocol === 'WireGuard' ? portsOf(local, link) : undefined;
  if (!ports) return [];
  return keysOf(local.member).flatMap(({ generation: own }) =>
    keysOf(link.peer).map(({ generation: peer, key }): Lane => {
      const listenPort = ports.listen + portShift(own, peer);
      return {
        device: `wg${listenPort}`,
        listenPort,
        remotePort: ports.remote + portShift(peer, own),
        ownGeneration: own,
        peerGeneration: peer,
        peerKey: key,
        isCurrent: own === local.member.keyGeneration && peer === link.peer.keyGeneration,
      };
    }),
  );
};

export const isEstablished = ({ established }: LocalNode, { device, peerKey }: Lane): boolean =>
  established?.has(laneId(device, peerKey)) ?? false;

/**
 * The newer of two lanes. The peer's key counts first: once we have sent by its newer one we never go back, because then it
 * may take the lanes of the older one away at any moment.
 */
const newer = (a: Lane, b: Lane): Lane =>
  a.peerGeneration > b.peerGeneration || (a.peerGeneration === b.peerGeneration && a.ownGeneration > b.ownGeneration)
    ? a
    : b;

/** The lane by which packets are sent: the newest established one; while none is, that of the current keys. */
export const sendingLane = (local: LocalNode, lanes: readonly Lane[]): Lane | undefined => {
  const established = lanes.filter((lane) => isEstablished(local, lane));
  return established.length === 0 ? lanes[0] : established.reduce(newer);
};

/** The interface by which packets of a link are sent; undefined while a gateway has no port yet, or when the link is not WireGuard. */
export const wireGuardInterfaceOf = (local: LocalNode, link: PeerLink): string | undefined =>
  sendingLane(local, lanesOf(local, link))?.device;
