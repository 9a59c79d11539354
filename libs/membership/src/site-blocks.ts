import { nodeBlockLength, type PodCidrAssignment, type Site } from '@unbounded/crds';
import { AddressSet, overlaps, type Prefix, tryParsePrefix } from '@unbounded/ip';

/** A Site's addresses, parsed once for each version of the object. */
export interface SiteBlocks {
  /** `spec.nodeCidrs` */
  readonly nodes: AddressSet;
  readonly nodePrefixes: readonly Prefix[];
  /** `cidrBlocks` of all entries of `spec.podCidrAssignments`, disabled ones too: they are routed to the Site. */
  readonly pods: AddressSet;
  readonly podPrefixes: readonly Prefix[];
  /**
   * Prefix length of what a node gets at most of the pools that the block overlaps; undefined: of one of them the Site gives nothing,
   * so that others may, or of all because another CNI plugin is there.
   */
  readonly widestGiven: (block: Prefix) => number | undefined;
  /** `status.l2LocatorBlock` */
  readonly locators: Prefix | undefined;
}

const parse = (texts: readonly string[]): readonly Prefix[] => texts.flatMap((text) => tryParsePrefix(text) ?? []);

const createWidestGiven = (assignments: readonly PodCidrAssignment[]): SiteBlocks['widestGiven'] => {
  const pools = assignments.flatMap((assignment) => {
    const all = parse(assignment.cidrBlocks);
    return all.map((pool) => ({
      pool,
      length:
        assignment.assignmentEnabled === false
          ? undefined
          : nodeBlockLength(pool.family, all.find(({ family }) => family === pool.family)!.length, assignment),
    }));
  });
  return (block) => {
    // Around pools too: two that lie side by side are as good as one for who states a block.
    const lengths = pools.flatMap(({ pool, length }) => (overlaps(pool, block) ? [length] : []));
    const given = lengths.filter((length) => length !== undefined);
    return lengths.length > 0 && given.length === lengths.length ? Math.min(...given) : undefined;
  };
};

const read = ({ spec, status }: Site): SiteBlocks => {
  const nodePrefixes = parse(spec.nodeCidrs);
  const podPrefixes = parse(spec.podCidrAssignments.flatMap(({ cidrBlocks }) => cidrBlocks));
  return {
    nodes: AddressSet.of(nodePrefixes),
    nodePrefixes,
    pods: AddressSet.of(podPrefixes),
    podPrefixes,
    widestGiven: spec.manageCniPlugin === false ? () => undefined : createWidestGiven(spec.podCidrAssignments),
    locators: status?.l2LocatorBlock === undefined ? undefined : tryParsePrefix(status.l2LocatorBlock),
  };
};

const known = new WeakMap<Site, SiteBlocks>();

export const siteBlocks = (site: Site): SiteBlocks => {
  const blocks = known.get(site) ?? read(site);
  known.set(site, blocks);
  return blocks;
};

/** Prefix length of what a node gets at most of the Sites' pools that the block overlaps; undefined: they give nothing there. */
export const widestGivenIn = (sites: readonly Site[], block: Prefix): number | undefined => {
  const lengths = sites.flatMap((site) => siteBlocks(site).widestGiven(block) ?? []);
  return lengths.length > 0 ? Math.min(...lengths) : undefined;
};
