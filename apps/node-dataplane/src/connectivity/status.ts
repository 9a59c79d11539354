import type {
  ConnectivityStatus,
  GroupStatus,
  PeerHealthStatus,
  PeerStatus,
  WireGuardPeerStatus,
} from '@unbounded/status';
import type { NodePlan } from '@unbounded/topology';
import type { DeviceState, PeerState } from '@unbounded/wireguard';
import type { GroupReport, PeerReport } from './health/messages.ts';
import { pathId } from './paths/messages.ts';
import { pathReasonText } from './paths/moves.ts';
import type { TimedPath } from './paths/path-times.ts';

/** What is observed of peers, groups and sessions, as the node's report has it. */

export interface Observed {
  readonly dataplane: ConnectivityStatus['dataplane'];
  readonly peers: readonly PeerReport[];
  readonly groups: readonly GroupReport[];
  readonly paths: readonly TimedPath[];
  /** By interface, as of the last pass. */
  readonly wireGuard: ReadonlyMap<string, DeviceState>;
}

/** What is measured has two digits of worth: with more, each report would have each of them anew. */
const DIGITS = 2;

const healthOf = ({ state, rttMs, lossRatio, pathMtuBytes, forwards }: PeerReport): PeerHealthStatus => ({
  state,
  ...(rttMs === undefined ? {} : { rttMs: Number(rttMs.toPrecision(DIGITS)) }),
  ...(lossRatio === undefined ? {} : { lossRatio: Number(lossRatio.toPrecision(DIGITS)) }),
  ...(pathMtuBytes === undefined ? {} : { pathMtuBytes }),
  ...(forwards === undefined ? {} : { forwards }),
});

const sessionOf = (
  { endpoint, latestHandshakeMs, rxBytes, txBytes }: PeerState,
  path: TimedPath | undefined,
): WireGuardPeerStatus => ({
  ...(endpoint === undefined ? {} : { endpoint }),
  ...(latestHandshakeMs === undefined ? {} : { latestHandshakeTime: new Date(latestHandshakeMs).toISOString() }),
  ...{ rxBytes, txBytes },
  ...(path && {
    path: path.path === 'direct' ? ('Direct' as const) : ('Relayed' as const),
    pathReason: pathReasonText(path.reason),
    pathSinceTime: path.sinceTime,
  }),
});

const groupOf = ({ family, site, members }: GroupReport): GroupStatus => ({
  ...(site === undefined ? {} : { site }),
  family: family === 4 ? 'IPv4' : 'IPv6',
  members: Object.fromEntries(members.map(({ node, ...member }) => [node, member])),
});

/** Peers of the plan, with the protocol that packets go to them by. */
const protocolsOf = ({ wireGuard, tunnels, probes }: NodePlan): Map<string, PeerStatus['protocol']> =>
  new Map([
    ...probes.map(({ node }) => [node, 'None'] as const),
    ...tunnels.map(({ node, protocol }) => [node, protocol] as const),
    ...wireGuard.flatMap(({ peers }) => peers.map(({ node }) => [node, 'WireGuard'] as const)),
  ]);

export const connectivityStatus = (plan: NodePlan, observed: Observed): ConnectivityStatus => {
  const health = new Map(observed.peers.map((peer) => [`${peer.node}/${peer.family}`, healthOf(peer)]));
  const paths = new Map(observed.paths.map((path) => [pathId(path), path]));
  const sessions = new Map<string, Record<string, WireGuardPeerStatus>>();
  for (const { name, peers } of plan.wireGuard) {
    const known = new Map(observed.wireGuard.get(name)?.peers.map((peer) => [peer.publicKey, peer]));
    for (const { node, publicKey } of peers) {
      const peer = known.get(publicKey);
      const path = paths.get(pathId({ device: name, publicKey }));
      if (peer) sessions.set(node, { ...sessions.get(node), [name]: sessionOf(peer, path) });
    }
  }
  const peerOf = ([node, protocol]: readonly [string, PeerStatus['protocol']]): [string, PeerStatus] => {
    const [ipv4, ipv6] = [health.get(`${node}/4`), health.get(`${node}/6`)];
    return [
      node,
      { protocol, health: { ...(ipv4 && { ipv4 }), ...(ipv6 && { ipv6 }) }, wireGuard: sessions.get(node) ?? {} },
    ];
  };
  return {
    ...{ site: plan.site, role: plan.role, dataplane: observed.dataplane },
    peers: Object.fromEntries([...protocolsOf(plan)].map(peerOf)),
    groups: Object.fromEntries(observed.groups.map((group) => [group.name, groupOf(group)])),
  };
};
