/** Names of sites as numbers, which is what fits into a probe's reply. */

const OFFSET_BASIS = 0x811c9dc5;
const PRIME = 0x01000193;

/**
 * 32-bit FNV-1a of the UTF-8 bytes of a name (draft-eastlake-fnv). Two of 256 sites share a number once in 130,000
 * clusters; such a site counts as reached while the other is.
 */
export const siteHash = (name: string): number => {
  let hash = OFFSET_BASIS;
  for (const byte of new TextEncoder().encode(name)) hash = Math.imul(hash ^ byte, PRIME) >>> 0;
  return hash;
};
