import type { ProbeSeen } from '@unbounded/topology';
import type { PeerReport } from '../health/messages.ts';

/** What the probes of both families say of each node, as far as an exchange of our key is concerned. */
export const probeSeen = (peers: readonly PeerReport[]): Map<string, ProbeSeen> => {
  const seen = new Map<string, ProbeSeen>();
  for (const { node, state, knowsNextKey } of peers) {
    const answers = state === 'Healthy' || state === 'Degraded';
    if (answers && (knowsNextKey || seen.get(node) === 'aware')) seen.set(node, 'aware');
    else if (answers) seen.set(node, 'unaware');
    else if (!seen.has(node)) seen.set(node, 'silent');
  }
  return seen;
};
