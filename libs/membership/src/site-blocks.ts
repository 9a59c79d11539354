import { type Site } from '@unbounded/crds';
import { AddressSet, tryParsePrefix } from '@unbounded/ip';

/** A Site's addresses, parsed once for each version of the object. */
export interface SiteBlocks {
  /** `spec.nodeCidrs` */
  readonly nodes: AddressSet;
  /** `cidrBlocks` of all entries of `spec.podCidrAssignments`, disabled ones too: they are routed to the Site. */
  readonly pods: AddressSet;
}

const setOf = (texts: readonly string[]): AddressSet =>
  AddressSet.of(texts.flatMap((text) => tryParsePrefix(text) ?? []));

const known = new WeakMap<Site, SiteBlocks>();

export const siteBlocks = (site: Site): SiteBlocks => {
  const blocks = known.get(site) ?? {
    nodes: setOf(site.spec.nodeCidrs),
    pods: setOf(site.spec.podCidrAssignments.flatMap(({ cidrBlocks }) => cidrBlocks)),
  };
  known.set(site, blocks);
  return blocks;
};
