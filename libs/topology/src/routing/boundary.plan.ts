import { AddressSet, formatPrefix, hostPrefix, parseAddress, type Prefix, SPECIAL_BLOCKS } from '@unbounded/ip';
import type { PeerLink } from '../links/links.plan.ts';
import type { LocalNode } from '../links/local-node.ts';
import type { BoundaryPlan } from '../plan.ts';
import { networkSites } from '../world/reach.ts';
import type { SiteModel, World } from '../world/world.ts';

/**
 * What may leave the overlay at a node, and what may enter it. Everything here is stated by an administrator's object, or is a node
 * or pod of the cluster: a peer that sends more reaches nothing by it.
 */

const nearSites = (world: World, { member }: LocalNode): SiteModel[] =>
  [...networkSites(world, member.site)].flatMap((name) => world.sites.get(name) ?? []);

/** Pods that another CNI plugin connects: their addresses come in and go out by devices that only it knows. */
const podsOfOthers = (sites: readonly SiteModel[]): Prefix[] =>
  sites.filter(({ manageCni }) => !manageCni).flatMap(({ podCidrs }) => podCidrs);

const textsOf = (blocks: readonly Prefix[]): string[] =>
  AddressSet.of(blocks).subtract(AddressSet.of(SPECIAL_BLOCKS)).toPrefixes().map(formatPrefix);

/** A worker is an exit for nothing but its own pods; a gateway for the nodes beside it and what its pool routes. */
const exitsOf = (world: World, local: LocalNode): Prefix[] => {
  const { site, pool, podCidrs } = local.member;
  const own = world.sites.get(site)?.manageCni === false ? podCidrs : [];
  if (pool === undefined) return [...own];
  const near = nearSites(world, local);
  const routed = world.pools.get(pool)?.routedCidrs ?? [];
  return [...own, ...near.flatMap(({ nodeCidrs }) => nodeCidrs), ...podsOfOthers(near), ...routed];
};

/** Nodes and pods that are reached natively, and so come natively. */
const nativePeers = (links: readonly PeerLink[]): Prefix[] =>
  links
    .filter(({ protocol }) => protocol === 'None')
    .flatMap(({ peer }) => [...peer.podCidrs, ...peer.internalIps.map((text) => hostPrefix(parseAddress(text)))]);

const entriesOf = (world: World, { member }: LocalNode, links: readonly PeerLink[]): Prefix[] => {
  const site = world.sites.get(member.site);
  return [
    ...nativePeers(links),
    ...(world.pools.get(member.pool ?? '')?.routedCidrs ?? []),
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
