import { containsPrefix, formatPrefix, hostPrefix, parseAddress, type Prefix } from '@unbounded/ip';
import { carries, servingPools } from './distances.ts';
import type { Destination, Forwarding } from './forwarding.plan.ts';
import type { LocalNode, PeerLink } from './links.ts';
import type { NodePlan, RoutePlan } from './plan.ts';
import { networkSites } from './reach.ts';
import { routeVia } from './routes.plan.ts';
import type { Member, World } from './world.ts';

/**
 * At a gateway, the addresses of the nodes on its own network. It reaches them by the LAN, where their tunnels end; but what
 * another site sends there goes on by the node's tunnel, which keeps its source, and so it may come by any gateway.
 */

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

/** Whether an agent takes a node's own address out of the node's tunnel. */
const takesNodeAddresses = ({ features }: Member): boolean => features.includes('node-addresses');

/**
 * Whether the answers arrive whatever gateway they go by: of a pool that serves the node's site, of our own, where one hands them
 * to another, or on the nodes' own network. An agent of an earlier version drops there what has a node's own address.
 */
const isAnswerTaken = (world: World, { member }: LocalNode, site: string): boolean => {
  const pools = new Set([...servingPools(world, site), member.pool]);
  const network = networkSites(world, site);
  return [...world.pools.values()]
    .flatMap(({ gateways }) => gateways)
    .filter((gateway) => pools.has(gateway.pool) || network.has(gateway.site))
    .every((gateway) => gateway.name === member.name || takesNodeAddresses(gateway));
};

/** Whether a tunnel leads there; without one, or natively, the LAN does. */
const isWayOn = (to: Destination): boolean => typeof to === 'object' && !('gateways' in to);

/** Nothing at a worker. */
export const planNodeAddresses = (
  world: World,
  local: LocalNode,
  forwarding: Forwarding,
  mtuBytes: number,
): Pick<NodePlan, 'nodeAddresses' | 'transitRoutes'> => {
  const answered = new Map<string, boolean>();
  const isAnswered = (site: string): boolean => {
    const known = answered.get(site) ?? isAnswerTaken(world, local, site);
    answered.set(site, known);
    return known;
  };
  const near = forwarding.blocks.filter(({ transitTo }) => transitTo !== undefined);
  const empty = new Set(forwarding.groups.filter(({ members }) => members.length === 0).map(({ name }) => name));
  const routes = near
    .filter(({ to, transitTo }) => isWayOn(to) && isAnswered(transitTo!))
    .map((block): RoutePlan => ({
      prefix: formatPrefix(block.prefix),
      via: routeVia(local, block, empty),
      mtuBytes: Math.min(mtuBytes, block.mtuBytes),
    }));
  return {
    ...(near.length === 0 ? {} : { nodeAddresses: near.map(({ prefix }) => formatPrefix(prefix)) }),
    ...(routes.length === 0 ? {} : { transitRoutes: routes }),
  };
};
