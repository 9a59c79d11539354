import { containsPrefix, type Family, hostPrefix, overlaps, parseAddress, type Prefix } from '@unbounded/ip';
import type { PeerLink } from '../links/links.plan.ts';
import type { LocalNode } from '../links/local-node.ts';
import { networkSites } from '../world/reach.ts';
import type { World } from '../world/world.ts';
import { servedSites, servingPools } from './distances.ts';
import { relayAddress } from './endpoint-hosts.ts';
import { takesNodeAddresses } from './node-addresses.plan.ts';
import type { Path } from './paths.plan.ts';
import { isPublic } from './underlay-guard.ts';

/**
 * From which address a node's own packets go to other sites. Who asks a node there asks its InternalIP, and drops an answer from any other
 * address; a UDP server that listens on all addresses leaves the choice to the kernel, which takes the preferred source of the route. So it
 * is the InternalIP, but where that would not arrive or could not be answered: there it is the overlay address.
 */

/** What nodes everywhere reach without the overlay: they route no block of nodes that holds it. */
const neededByAll = (world: World): Prefix[] => {
  const gateways = [...world.pools.values()].flatMap((pool) => pool.gateways);
  const relay = relayAddress(world);
  const addresses = [...gateways.flatMap(({ externalIps }) => externalIps), ...(relay === undefined ? [] : [relay])];
  return addresses.map((text) => hostPrefix(parseAddress(text)));
};

/**
 * The node's first InternalIP of a family, if every other site can route the block that it is in.
 * @param needed of {@link neededByAll}
 */
const answerableAddress = (
  world: World,
  local: LocalNode,
  family: Family,
  needed: readonly Prefix[],
): string | undefined => {
  const { site, internalIps, nodeAddresses } = local.member;
  const own = internalIps.find((text) => parseAddress(text).family === family);
  if (own === undefined || !nodeAddresses.includes(own)) return undefined;
  const block = world.sites.get(site)?.nodeCidrs.find((range) => containsPrefix(range, hostPrefix(parseAddress(own))));
  const network = networkSites(world, site);
  const others = [...world.sites.values()].filter(({ name }) => !network.has(name));
  const elsewhere = [
    ...others.flatMap(({ nodeCidrs }) => nodeCidrs),
    ...[...world.pools.values()].flatMap(({ routedCidrs }) => routedCidrs),
  ];
  if (!block || elsewhere.some((range) => overlaps(range, block))) return undefined;
  return needed.some((host) => containsPrefix(block, host)) ? undefined : own;
};

/** To the pods of another gateway by its own link: the answer may go by any pool that serves a Site, and that takes them from there alone. */
const isOnlyWay = (world: World, { member }: LocalNode, { peer }: PeerLink): boolean =>
  peer.pool === undefined ||
  (servingPools(world, peer.site).every((name) => name === peer.pool) &&
    servingPools(world, peer.site).length > 0 &&
    servingPools(world, member.site).every((name) => name === member.pool));

/** Whether the peer takes a packet with the node's own address out of the link. */
const takes = ({ role, protocol, external, peer }: PeerLink, own: string): boolean => {
  if (protocol === 'None' || role === 'toWorker') return true;
  return takesNodeAddresses(peer) && !(external && role === 'toGateway' && isPublic(own));
};

/** Whether pods of the site can answer: its gateways say so, and its workers know the same addresses of API servers. */
const isAnsweredFrom = (world: World, site: string): boolean =>
  servingPools(world, site).every((name) =>
    world.pools.get(name)!.gateways.every(({ features }) => features.includes('node-cidrs')),
  );

/** From a gateway without a link only the LAN leads to the node, and what comes by it is the gateway's. */
const meetsItsGateways = (world: World, { member }: LocalNode, links: readonly PeerLink[]): boolean => {
  const linked = new Set([member.name, ...links.map(({ peer }) => peer.name)]);
  return servingPools(world, member.site).every((name) =>
    world.pools.get(name)!.gateways.every((gateway) => linked.has(gateway.name)),
  );
};

/** Of paths to sites with which the node shares no network: inside one its packets go by the LAN. */
export const fromNode = (world: World, local: LocalNode, links: readonly PeerLink[]): ((path: Path) => boolean) => {
  const { site, pool } = local.member;
  const network = networkSites(world, site);
  const isServed = pool === undefined || servedSites(world, pool).includes(site);
  const isReached = isServed && meetsItsGateways(world, local, links);
  const needed = neededByAll(world);
  const addresses = new Map(
    ([4, 6] as const).map((family) => [family, answerableAddress(world, local, family, needed)]),
  );
  return ({ prefix, via, routed, onlyTransit, isLocator }) => {
    const own = addresses.get(prefix.family);
    if (own === undefined || !isReached || !routed || onlyTransit || isLocator) return false;
    const target = 'direct' in via ? via.direct.peer.site : via.way.site;
    if (target === undefined || network.has(target) || !isAnsweredFrom(world, target)) return false;
    if ('direct' in via && !isOnlyWay(world, local, via.direct)) return false;
    const over = 'direct' in via ? [via.direct] : via.way.members.map(({ link }) => link);
    return over.every((link) => takes(link, own));
  };
};
