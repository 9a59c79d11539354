import type { KernelGroup } from '../../data-path/kernel-plan.ts';
import { peerId, type PeerReport } from './messages.ts';

/**
 * Whether a group may still lead packets to a member that never answers: none of several has answered yet, and their
 * grace is not over. A node that is new waits for this before pods are plugged in.
 */
export const isUndecided = (groups: readonly KernelGroup[], peers: readonly PeerReport[]): boolean => {
  const known = new Map(peers.map((peer) => [peerId(peer), peer]));
  return groups.some(
    ({ family, members }) =>
      members.length > 1 &&
      members.every(({ node }) => {
        const peer = known.get(peerId({ node, family }));
        return peer?.state === 'New' && !peer.graceOver;
      }),
  );
};
