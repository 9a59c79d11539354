import { L2_LOCATOR_PREFIX_BITS, MESH_NAME, type Mesh, type Site } from '@unbounded/crds';
import { formatAddress, formatPrefix, hostPrefix, overlaps, type Prefix, tryParsePrefix } from '@unbounded/ip';
import { listed, quote } from '@unbounded/membership';

import type { ClusterAddresses } from './underlay.plan.ts';

/** Why no locator is given: for the condition of every Site. */
export interface PrefixRefusal {
  readonly reason: 'InvalidLocatorPrefix' | 'LocatorPrefixOverlaps';
  readonly message: string;
}

const FIELD = `spec.l2.locatorPrefix of Mesh ${MESH_NAME}`;

/** The text of the field; undefined: stretched L2 is off. */
export const locatorPrefixOf = (meshes: readonly Mesh[]): string | undefined =>
  meshes.find(({ metadata }) => metadata.name === MESH_NAME)?.spec.l2?.locatorPrefix;

const isUsable = (prefix: Prefix): boolean =>
  prefix.family === 6 &&
  prefix.length >= L2_LOCATOR_PREFIX_BITS.shortest &&
  prefix.length <= L2_LOCATOR_PREFIX_BITS.longest;

const overlapping = (prefix: Prefix, texts: readonly string[], what: string): string[] =>
  texts
    .filter((text) => {
      const other = tryParsePrefix(text);
      return other !== undefined && overlaps(prefix, other);
    })
    .map((text) => `${what} (${text})`);

const overlapsOf = (prefix: Prefix, sites: readonly Site[], { apiServers, services }: ClusterAddresses): string[] => [
  ...sites
    .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .flatMap(({ metadata, spec }) => [
      ...overlapping(prefix, spec.nodeCidrs, `nodeCidrs of Site ${metadata.name}`),
      ...overlapping(
        prefix,
        spec.podCidrAssignments.flatMap(({ cidrBlocks }) => cidrBlocks),
        `cidrBlocks of Site ${metadata.name}`,
      ),
    ]),
  ...overlapping(prefix, services.map(formatPrefix), 'the addresses of Services'),
  ...apiServers
    .filter((address) => overlaps(prefix, hostPrefix(address)))
    .map((address) => `the address of an API server (${formatAddress(address)})`),
];

/**
 * The prefix that Sites get their blocks from. One that holds other addresses of the network is refused: routed as locators,
 * these would be cut off.
 */
export const checkLocatorPrefix = (
  text: string,
  sites: readonly Site[],
  cluster: ClusterAddresses,
): Prefix | PrefixRefusal => {
  const prefix = tryParsePrefix(text);
  const { shortest, longest } = L2_LOCATOR_PREFIX_BITS;
  if (!prefix || !isUsable(prefix)) {
    const message = `${FIELD} is ${quote(text)}: no locator is given; write an IPv6 prefix of /${shortest} to /${longest} like fd53:ab:cd::/48`;
    return { reason: 'InvalidLocatorPrefix', message };
  }
  const others = overlapsOf(prefix, sites, cluster);
  if (others.length === 0) return prefix;
  const message = `${FIELD} is ${text} and overlaps ${listed(others)}: no locator is given; write a prefix in which nothing else has an address, like a unique local one (RFC 4193)`;
  return { reason: 'LocatorPrefixOverlaps', message };
};
