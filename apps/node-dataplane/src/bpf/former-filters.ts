import { detachFilter, filterProgramId } from '@unbounded/libbpf-ts';
import type { RouteSocket } from '@unbounded/netlink';
import { programIds } from './layout-folder.ts';
import { otherLayouts } from './pin-folder.ts';

/**
 * Takes clsact filters that run programs of ours from devices that stay. Unlike links they do not end with their pins, and go on with maps that nobody
 * writes any more. Before the pins go: these say which programs are ours.
 */
export const detachFormerFilters = async (net: Pick<RouteSocket, 'links'>, pinFolder: string): Promise<void> => {
  const ours = new Set([pinFolder, ...otherLayouts(pinFolder)].flatMap((layout) => [...programIds(layout).keys()]));
  if (ours.size === 0) return;
  for (const { index: ifindex } of await net.links.list())
    for (const direction of ['ingress', 'egress'] as const) {
      const id = filterProgramId({ ifindex, direction });
      if (id !== undefined && ours.has(id)) detachFilter({ ifindex, direction });
    }
};
