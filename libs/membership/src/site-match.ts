import type { Site } from '@unbounded/crds';
import { containsAddress, overlaps, type Prefix, tryParsePrefix } from '@unbounded/ip';

import type { NodeFacts } from './node-facts.ts';

interface SiteEntry {
  readonly site: Site;
  readonly nodePrefixes: readonly Prefix[];
}

/** A Site whose node blocks overlap those of an earlier one: addresses in both belong to the earlier one. */
export interface SiteOverlap {
  readonly site: string;
  readonly earlier: string;
  readonly cidr: string;
  readonly earlierCidr: string;
}

export interface SiteIndex {
  /** In order of precedence. */
  readonly sites: readonly Site[];
  /** The Site that the node is in by its internal addresses. */
  siteOf(node: Pick<NodeFacts, 'internalAddresses'>): Site | undefined;
  overlaps(): readonly SiteOverlap[];
}

/** The older Site comes first; of two created in the same second the one whose name sorts first. */
const compareSites = (a: Site, b: Site): number => {
  const [x, y] = [a, b].map(({ metadata }) => `${metadata.creationTimestamp ?? ''} ${metadata.name}`) as [
    string,
    string,
  ];
  return x < y ? -1 : x > y ? 1 : 0;
};

const overlapOf = (later: SiteEntry, earlier: SiteEntry): SiteOverlap | undefined => {
  for (const [index, prefix] of later.nodePrefixes.entries()) {
    const other = earlier.nodePrefixes.findIndex((candidate) => overlaps(candidate, prefix));
    if (other < 0) continue;
    return {
      site: later.site.metadata.name,
      earlier: earlier.site.metadata.name,
      cidr: later.site.spec.nodeCidrs[index]!,
      earlierCidr: earlier.site.spec.nodeCidrs[other]!,
    };
  }
  return undefined;
};

export const indexSites = (sites: readonly Site[]): SiteIndex => {
  const entries = sites
    .toSorted(compareSites)
    .map((site) => ({ site, nodePrefixes: site.spec.nodeCidrs.flatMap((text) => tryParsePrefix(text) ?? []) }));
  return {
    sites: entries.map(({ site }) => site),
    siteOf: ({ internalAddresses }) =>
      entries.find(({ nodePrefixes }) =>
        internalAddresses.some((address) => nodePrefixes.some((prefix) => containsAddress(prefix, address))),
      )?.site,
    overlaps: () =>
      entries.flatMap((later, index) => entries.slice(0, index).flatMap((earlier) => overlapOf(later, earlier) ?? [])),
  };
};
