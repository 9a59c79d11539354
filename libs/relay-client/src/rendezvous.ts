/** FNV-1a over bytes, continued from `hash`. */
const fnv = (bytes: Uint8Array, hash: number): number => {
  let result = hash;
  for (const byte of bytes) result = Math.imul(result ^ byte, 0x0100_0193);
  return result;
};

/** Murmur3's finalizer: FNV's last bytes have not reached all bits. */
const mix = (hash: number): number => {
  let result = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  result = Math.imul(result ^ (result >>> 13), 0xc2b2_ae35);
  return (result ^ (result >>> 16)) >>> 0;
};

const FNV_START = 0x811c_9dc5;
const utf8 = new TextEncoder();

/** What both ends of a pair have in common, whichever of them asks. */
export const pairOf = (a: Uint8Array, b: Uint8Array): Uint8Array => {
  const [first, second] = Buffer.compare(a, b) <= 0 ? [a, b] : [b, a];
  return Buffer.concat([first, second]);
};

/**
 * The names in the order of preference for a subject: highest random weight (Thaler and Ravishankar, 1998). A name that
 * goes away changes nothing for subjects that prefer another one, and its own spread over all that are left.
 */
export const ranked = (subject: Uint8Array, names: readonly string[]): string[] => {
  const seed = fnv(subject, FNV_START);
  return names
    .map((name) => ({ name, weight: mix(fnv(utf8.encode(name), seed)) }))
    .sort((a, b) => b.weight - a.weight || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
};
