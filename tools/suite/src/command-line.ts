import { LAYERS, layerNamed } from './layers.ts';

/** What `tools/test` is asked to do. */
export type Request =
  | { readonly kind: 'tier'; readonly full: boolean }
  /** `base`: a commit; none for the one that the remote has. */
  | { readonly kind: 'affected'; readonly base?: string | undefined }
  /** Properties of pure code, with `times` as many cases. */
  | { readonly kind: 'properties'; readonly times: number; readonly args: readonly string[] }
  | { readonly kind: 'layer'; readonly layer: string; readonly args: readonly string[] }
  /** `interrupted`: its processes are stopped for moments as well. */
  | {
      readonly kind: 'flaky';
      readonly interrupted: boolean;
      readonly layer: string;
      readonly times: number;
      readonly args: readonly string[];
    };

/** What stands beside the layers and is no vitest project. */
const OTHERS = ['check', 'faults'] as const;

/** How many words may follow, and what they say. */
const TAKES: Readonly<Record<string, readonly [most: number, takes: string]>> = {
  full: [0, 'none'],
  check: [0, 'none'],
  affected: [1, 'a commit'],
};

const isKnown = (name: string): boolean =>
  LAYERS.some((layer) => layer.name === name) || (OTHERS as readonly string[]).includes(name);

/** @throws Error that says what would be right */
const parseTimes = (words: string, times: string): number => {
  if (!/^[1-9]\d{0,3}$/.test(times)) throw new Error(`${words}: N is "${times}", it must be an integer from 1 to 9999`);
  return Number(times);
};

/** @throws Error that says what would be right */
export const parseRequest = ([word, ...rest]: readonly string[]): Request => {
  if (word === undefined) return { kind: 'tier', full: false };
  const [most, takes] = TAKES[word] ?? [Number.POSITIVE_INFINITY, ''];
  if (rest.length > most) throw new Error(`${word}: "${rest.at(most)}" is one word too many: it takes ${takes}`);
  if (word === 'full') return { kind: 'tier', full: true };
  if (word === 'affected') return { kind: 'affected', base: rest[0] };
  if (word === 'flaky' || word === 'interrupted') {
    const [name = '', times = '', ...args] = rest;
    const [layer, interrupted] = [layerNamed(name).name, word === 'interrupted'];
    return { kind: 'flaky', interrupted, layer, times: parseTimes(`${word} LAYER N`, times), args };
  }
  if (word === 'properties') {
    const [times = '', ...args] = rest;
    return { kind: 'properties', times: parseTimes('properties N', times), args };
  }
  if (!isKnown(word)) {
    const known = [
      'full',
      'affected',
      'flaky',
      'interrupted',
      'properties',
      ...OTHERS,
      ...LAYERS.map(({ name }) => name),
    ];
    throw new Error(`"${word}": it must be one of ${known.join(', ')}`);
  }
  return { kind: 'layer', layer: word, args: rest };
};
