import type { LocalNode } from '../links/local-node.ts';
import { networkSites } from '../world/reach.ts';
import type { Member, World } from '../world/world.ts';
import { servingPools } from './distances.ts';

/**
 * At a gateway, the addresses of the nodes on its own network. It reaches them by the LAN, where their tunnels end; but what
 * another site sends there goes on by the node's tunnel, which keeps its source, and so it may come by any gateway.
 */

/** Whether an agent takes a node's own address out of the node's tunnel. */
export const takesNodeAddresses = ({ features }: Member): boolean => features.includes('node-addresses');

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

/** The same for each site, worked out once. */
export const answeredSites = (world: World, local: LocalNode): ((site: string) => boolean) => {
  const known = new Map<string, boolean>();
  return (site) => {
    const answer = known.get(site) ?? isAnswerTaken(world, local, site);
    known.set(site, answer);
    return answer;
  };
};
