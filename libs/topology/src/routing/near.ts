import { AddressSet, containsPrefix, hostPrefix, parseAddress, type Prefix } from '@unbounded/ip';
import type { PeerLink } from '../links/links.plan.ts';
import type { LocalNode } from '../links/local-node.ts';
import { networkSites } from '../world/reach.ts';
import { carries } from '../world/usable.ts';
import type { World } from '../world/world.ts';

/** Addresses of nodes that the node reaches without the overlay. */
export const nearBlocks = (world: World, local: LocalNode): Prefix[] =>
  [...networkSites(world, local.member.site)].flatMap((name) => world.sites.get(name)?.nodeCidrs ?? []);

/** What the node's own pool routes beyond the cluster. */
export const ownRoutedBlocks = (world: World, { member }: LocalNode): readonly Prefix[] =>
  world.pools.get(member.pool ?? '')?.routedCidrs ?? [];

/** Addresses that leave by routes of the node's own, also where a wider block lies behind gateways. */
export const blocksHere = (world: World, local: LocalNode): AddressSet =>
  AddressSet.of([...nearBlocks(world, local), ...ownRoutedBlocks(world, local)]);

/** The addresses of a link's peer that are near and can be reached by the link; IPv6 needs pods of that family at both ends. */
export const nearAddressesOf = (
  local: LocalNode,
  { role, protocol, peer }: PeerLink,
  near: readonly Prefix[],
): Prefix[] =>
  role === 'mesh' || role === 'toGateway' || protocol === 'None'
    ? []
    : peer.nodeAddresses
        .map((text) => hostPrefix(parseAddress(text)))
        .filter((host) => near.some((block) => containsPrefix(block, host)))
        .filter(({ family }) => carries(peer, family) && carries(local.member, family));
