import { AddressSet, formatPrefix, hostPrefix, parseAddress, type Prefix, SPECIAL_BLOCKS } from '@unbounded/ip';
import type { PeerLink } from '../links/links.plan.ts';
import type { LocalNode } from '../links/local-node.ts';
import type { BoundaryPlan } from '../plan.ts';
import { networkSites } from '../world/reach.ts';
import type { World } from '../world/world.ts';
import { nearBlocks, ownRoutedBlocks } from './near.ts';

/**
 * What may leave the overlay at a node, and what may enter it. Everything here is stated by an administrator's object, or is a node
 * or pod of the cluster: a peer that sends more reaches nothing by it.
 */

/** Pods near the node that another CNI plugin connects: their addresses come in and go out by devices that only it knows. */
const podsOfOthers = (world: World, { member }: LocalNode): Prefix[] =>
  [...networkSites(world, member.site)]
    .flatMap((name) => world.sites.get(name) ?? [])
    .filter(({ manageCni }) => !manageCni)
    .flatMap(({ podCidrs }) => podCidrs);

const textsOf = (blocks: readonly Prefix[]): string[] =>
  AddressSet.of(blocks).subtract(AddressSet.of(SPECIAL_BLOCKS)).toPrefixes().map(formatPrefix);

/** A worker is an exit for nothing but its own pods; a gateway for the nodes beside it and what its pool routes. */
const exitsOf = (world: World, local: LocalNode): Prefix[] => {
  const { site, pool, podCidrs } = local.member;
  const own = world.sites.get(site)?.manageCni === false ? podCidrs : [];
  if (pool === undefined) return [...own];
  return [...own, ...nearBlocks(world, local), ...podsOfOthers(world, local), ...ownRoutedBlocks(world, local)];
};

/** Nodes and pods that are reached natively, and so come natively. */
const nativePeers = (links: readonly PeerLink[]): Prefix[] =>
  links
    .filter(({ protocol }) => protocol === 'None')
    .flatMap(({ peer }) => [
      ...peer.podCidrs,
      ...(peer.locator ? [peer.locator] : []),
      ...peer.internalIps.map((text) => hostPrefix(parseAddress(text))),
    ]);

const entriesOf = (world: World, local: LocalNode, links: readonly PeerLink[]): Prefix[] => {
  const { member } = local;
  const site = world.sites.get(member.site);
  return [
    ...nativePeers(links),
    ...ownRoutedBlocks(world, local),
    ...(site?.manageCni === false ? member.podCidrs : []),
    ...(site?.allowedSourceCidrs ?? []),
  ];
};

const ownPodsOf = (world: World, { member }: LocalNode): Prefix[] => {
  const site = world.sites.get(member.site);
  // Another CNI plugin may give a node's pods any address of the site's.
  return [...member.podCidrs, ...(site?.manageCni === false ? site.podCidrs : [])];
};

export const planBoundary = (world: World, local: LocalNode, links: readonly PeerLink[]): BoundaryPlan => ({
  ownPods: textsOf(ownPodsOf(world, local)),
  exits: textsOf(exitsOf(world, local)),
  entries: textsOf(entriesOf(world, local, links)),
});
