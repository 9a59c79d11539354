import type { Family } from '@unbounded/ip';
import type { PeerLink } from './links.plan.ts';
import type { LocalNode } from './local-node.ts';
import { nextHopOf, overlayAddress } from './next-hops.ts';
import type { ProbePlan } from '../plan.ts';

const probesOf = (local: LocalNode, link: PeerLink, family: Family): ProbePlan[] => {
  const localAddress = overlayAddress(local.member, family);
  const address = overlayAddress(link.peer, family);
  // A link that waits for its gateway's port carries no probes either.
  const isReady = link.protocol === 'None' || nextHopOf(local, link, family) !== undefined;
  if (localAddress === undefined || address === undefined || !isReady || !link.health.enabled) return [];
  const { intervalMs, detectMultiplier } = link.health;
  const { name: node, publicKey, nextPublicKey } = link.peer;
  const keys = { publicKey: publicKey!, ...(nextPublicKey === undefined ? {} : { nextPublicKey }) };
  return [{ node, ...keys, family, localAddress, address, intervalMs, detectMultiplier }];
};

/** Whom the node probes: the peer of every link whose objects do not say otherwise, in each family that both have. */
export const planProbes = (local: LocalNode, links: readonly PeerLink[]): ProbePlan[] =>
  links
    .toSorted((a, b) => (a.peer.name < b.peer.name ? -1 : 1))
    .flatMap((link) => [...probesOf(local, link, 4), ...probesOf(local, link, 6)]);
