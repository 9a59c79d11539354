import { type Family, firstAddress, formatAddress } from '@unbounded/ip';
import type { NextHop } from '../plan.ts';
import type { Member } from '../world/world.ts';
import { wireGuardInterfaceOf } from './lanes.ts';
import type { PeerLink } from './links.plan.ts';
import type { LocalNode } from './local-node.ts';
import { familyOf, ownIp } from './underlay.ts';

/** Next hops of links. */

/** A node's address in the overlay: the first of its first block of the family. */
export const overlayAddress = (member: Member, family: Family): string | undefined => {
  const block = member.podCidrs.find((own) => own.family === family);
  return block && formatAddress(firstAddress(block));
};

/**
 * The next hop on link behind a tunnel with Ethernet headers. For locators between nodes without IPv6 blocks it is an address of the
 * peer's locator, which nobody has: it only names the peer's MAC.
 */
const onLinkAddress = (peer: Member, family: Family): string | undefined =>
  overlayAddress(peer, family) ??
  (family === 6 && peer.locator ? formatAddress(firstAddress(peer.locator)) : undefined);

/** Where packets of a family for a link's peer go; undefined for native routing, and while the gateway has no port. */
export const nextHopOf = (local: LocalNode, link: PeerLink, family: Family): NextHop | undefined => {
  const { protocol, peer } = link;
  const node = peer.name;
  if (protocol === 'None') return undefined;
  if (protocol === 'WireGuard') {
    const device = wireGuardInterfaceOf(local, link);
    return device === undefined ? undefined : { protocol, node, device };
  }
  const remoteIp = link.remoteIp!;
  if (protocol === 'IPIP') return { protocol, node, remoteIp };
  const [peerIp, overlayIp] = [ownIp(peer), onLinkAddress(peer, family)];
  return {
    ...{ protocol, node, remoteIp },
    ...(peerIp === undefined ? {} : { peerIp }),
    ...(overlayIp === undefined ? {} : { overlayIp }),
  };
};

/** The neighbor to which native routing sends packets of a family: IPv6 cannot go by an IPv4 neighbor. */
export const nativeNeighbor = (link: PeerLink, family: Family): string | undefined => {
  if (link.protocol !== 'None') return undefined;
  return (link.external ? link.peer.externalIps : link.peer.internalIps).find((ip) => familyOf(ip) === family);
};
