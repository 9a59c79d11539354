import type { Prefix } from '@unbounded/ip';
import type { LocalNode } from './links.ts';
import { networkSites } from './reach.ts';
import type { World } from './world.ts';

/** Addresses of nodes that the node reaches without the overlay. */
export const nearBlocks = (world: World, local: LocalNode): Prefix[] =>
  [...networkSites(world, local.member.site)].flatMap((name) => world.sites.get(name)?.nodeCidrs ?? []);
