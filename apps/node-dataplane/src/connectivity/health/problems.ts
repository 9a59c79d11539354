import type { Problem } from '@unbounded/topology';
import type { PeerReport } from './messages.ts';

/** What people are told of peers that do not answer: one text however many there are. */

const LISTED = 5;

const isSilent = ({ state, graceOver }: PeerReport): boolean =>
  state === 'Unhealthy' || state === 'Recovering' || (state === 'New' && graceOver);

export const healthProblems = (peers: readonly PeerReport[]): Problem[] => {
  const silent = peers
    .filter(isSilent)
    .map(({ node, family }) => `${node} (IPv${family})`)
    .sort();
  if (silent.length === 0) return [];
  const more = silent.length > LISTED ? ` and ${silent.length - LISTED} more` : '';
  const message = `${silent.length} of ${peers.length} probed paths do not answer: ${silent.slice(0, LISTED).join(', ')}${more}`;
  return [{ reason: 'PeersUnhealthy', message }];
};
