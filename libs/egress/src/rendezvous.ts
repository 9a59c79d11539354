import { compareTexts } from './order.ts';

/**
 * Choices that every replica and every later version makes alike: a changed hash would move every address and every pod.
 * rendezvous.spec.ts holds values of it.
 */

const FNV_START = 0x811c_9dc5;

/** FNV-1a over the code units of a text, continued from `hash`. */
const fnv = (text: string, hash: number): number => {
  let result = hash;
  for (let index = 0; index < text.length; index++) result = Math.imul(result ^ text.charCodeAt(index), 0x0100_0193);
  return result;
};

/** Murmur3's finalizer: FNV's last characters have not reached all bits. */
const mix = (hash: number): number => {
  let result = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  result = Math.imul(result ^ (result >>> 13), 0xc2b2_ae35);
  return (result ^ (result >>> 16)) >>> 0;
};

/** 8 hexadecimal digits that tell one text from another, not against anyone who wants them equal. */
export const fingerprint = (text: string): string => mix(fnv(text, FNV_START)).toString(16).padStart(8, '0');

/**
 * The name that a subject prefers: highest random weight (Thaler and Ravishankar, 1998). When a name goes, only subjects that
 * preferred it choose anew; when one comes, only those that prefer it do. Undefined without names.
 */
export const preferred = (subject: string, names: Iterable<string>): string | undefined => {
  const seed = fnv('\n', fnv(subject, FNV_START));
  let best: { readonly name: string; readonly weight: number } | undefined;
  for (const name of names) {
    const weight = mix(fnv(name, seed));
    if (!best || weight > best.weight || (weight === best.weight && compareTexts(name, best.name) < 0)) {
      best = { name, weight };
    }
  }
  return best?.name;
};
