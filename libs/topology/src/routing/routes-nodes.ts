import type { LocalNode } from '../links/local-node.ts';
import { networkSites } from '../world/reach.ts';
import type { World } from '../world/world.ts';
import { blocksHere } from './near.ts';

/**
 * Whether a node routes the nodeCidrs of all sites of other networks into the overlay: none is left out for an address in it, and none
 * is cut by what the node reaches here. Then whoever sends from a node's own address there gets its answers.
 * @param guarded the world without the blocks that must not be routed
 */
export const routesNodes = (objects: World, guarded: World, local: LocalNode): boolean => {
  const network = networkSites(objects, local.member.site);
  const here = blocksHere(objects, local);
  return [...objects.sites.values()]
    .filter(({ name }) => !network.has(name))
    .every(
      ({ name, nodeCidrs }) =>
        guarded.sites.get(name)?.nodeCidrs.length === nodeCidrs.length &&
        !nodeCidrs.some((block) => here.overlaps(block)),
    );
};
