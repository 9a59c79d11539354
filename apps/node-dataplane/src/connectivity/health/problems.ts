import type { Problem } from '@unbounded/topology';
import type { PeerReport } from './messages.ts';

/** What people are told of peers that do not answer or do not forward: one text each, however many there are. */

const LISTED = 5;

const isSilent = ({ state, graceOver }: PeerReport): boolean =>
  state === 'Unhealthy' || state === 'Recovering' || (state === 'New' && graceOver);

/** Its agent lives, and the path carries its answers. */
export const isAnswering = ({ state }: Pick<PeerReport, 'state'>): boolean =>
  state === 'Healthy' || state === 'Degraded';

export const namesOf = (peers: readonly PeerReport[]): string => {
  const names = peers.map(({ node, family }) => `${node} (IPv${family})`).sort();
  const more = names.length > LISTED ? ` and ${names.length - LISTED} more` : '';
  return `${names.slice(0, LISTED).join(', ')}${more}`;
};

const silentProblems = (peers: readonly PeerReport[]): Problem[] => {
  const silent = peers.filter(isSilent);
  if (silent.length === 0) return [];
  const message = `${silent.length} of ${peers.length} probed paths do not answer: ${namesOf(silent)}`;
  return [{ reason: 'PeersUnhealthy', message }];
};

/** Some echoes come back, so this node forwards; through the others' gateways they do not. */
const echoProblems = (peers: readonly PeerReport[]): Problem[] => {
  const gateways = peers.filter((peer) => peer.forwards !== undefined && isAnswering(peer));
  const forwards = new Set(gateways.filter((peer) => peer.forwards).map(({ family }) => family));
  const lost = gateways.filter((peer) => !peer.forwards && forwards.has(peer.family)); // of none: see forwarding-faults.ts
  if (lost.length === 0) return [];
  const message = `${lost.length} of ${gateways.length} ways by gateways that answer probes return no echo, and are not used: ${namesOf(lost)}: see the conditions of these nodes`;
  return [{ reason: 'GatewayNotForwarding', message }];
};

export const healthProblems = (peers: readonly PeerReport[]): Problem[] => [
  ...silentProblems(peers),
  ...echoProblems(peers),
];
