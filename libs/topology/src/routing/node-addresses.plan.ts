import { formatPrefix } from '@unbounded/ip';
import { servingPools } from './distances.ts';
import type { Destination, Forwarding } from './forwarding.plan.ts';
import type { LocalNode } from '../links/local-node.ts';
import type { NodePlan, RoutePlan } from '../plan.ts';
import { networkSites } from '../world/reach.ts';
import { routeVia } from './routes.plan.ts';
import type { Member, World } from '../world/world.ts';

/**
 * At a gateway, the addresses of the nodes on its own network. It reaches them by the LAN, where their tunnels end; but what
 * another site sends there goes on by the node's tunnel, which keeps its source, and so it may come by any gateway.
 */

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
