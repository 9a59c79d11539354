import { type Gateway, NODE_FEATURES, type SiteNode } from '@unbounded/crds';
import type { TopologyObjects } from './world/world.ts';

/** Site N has the block of locators fd4c:0:0:N000::/52, of which its nodes have one each: first its gateways, then its workers. */

export const blockOfSite = (site: number): string => `fd4c:0:0:${site.toString(16)}000::/52`;
export const locatorOf = (site: number, host: number): string => `fd4c:0:0:${(site * 0x1000 + host).toString(16)}::/64`;

const numberOf = (site: string): number => Number(site.slice(1));

/** The same cluster with locators. Sites are named sN. */
export const withLocators = (objects: TopologyObjects): TopologyObjects => {
  const counts = new Map<string, number>();
  const given = <T extends SiteNode | Gateway>(node: T, site: string): T => {
    const count = (counts.get(site) ?? 0) + 1;
    counts.set(site, count);
    return { ...node, l2Locator: locatorOf(numberOf(site), count) };
  };
  return {
    ...objects,
    sites: objects.sites.map((site) => ({
      ...site,
      status: { l2LocatorBlock: blockOfSite(numberOf(site.metadata.name)) },
    })),
    gatewayPools: objects.gatewayPools.map((pool) => ({
      ...pool,
      status: {
        ...pool.status,
        nodes: (pool.status?.nodes ?? []).map((node) => ({
          ...given(node, node.siteName ?? ''),
          features: [...NODE_FEATURES],
        })),
      },
    })),
    slices: objects.slices.map((slice) => ({
      ...slice,
      nodes: (slice.nodes ?? []).map((node) => given(node, slice.siteName)),
    })),
  };
};
