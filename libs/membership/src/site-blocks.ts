import type { Site } from '@unbounded/crds';
import { AddressSet, type Prefix, tryParsePrefix } from '@unbounded/ip';

/** A Site's addresses, parsed once for each version of the object. */
export interface SiteBlocks {
  /** `spec.nodeCidrs` */
  readonly nodes: AddressSet;
  readonly nodePrefixes: readonly Prefix[];
  /** `cidrBlocks` of all entries of `spec.podCidrAssignments`, disabled ones too: they are routed to the Site. */
  readonly pods: AddressSet;
  readonly podPrefixes: readonly Prefix[];
  /** `status.l2LocatorBlock` */
  readonly locators: Prefix | undefined;
}

const parse = (texts: readonly string[]): readonly Prefix[] => texts.flatMap((text) => tryParsePrefix(text) ?? []);

const read = ({ spec, status }: Site): SiteBlocks => {
  const nodePrefixes = parse(spec.nodeCidrs);
  const podPrefixes = parse(spec.podCidrAssignments.flatMap(({ cidrBlocks }) => cidrBlocks));
  return {
    nodes: AddressSet.of(nodePrefixes),
    nodePrefixes,
    pods: AddressSet.of(podPrefixes),
    podPrefixes,
    locators: status?.l2LocatorBlock === undefined ? undefined : tryParsePrefix(status.l2LocatorBlock),
  };
};

const known = new WeakMap<Site, SiteBlocks>();

export const siteBlocks = (site: Site): SiteBlocks => {
  const blocks = known.get(site) ?? read(site);
  known.set(site, blocks);
  return blocks;
};
