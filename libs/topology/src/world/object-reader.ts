import {
  AddressSyntaxError,
  comparePrefixes,
  formatAddress,
  parseAddress,
  parsePrefix,
  type Prefix,
} from '@unbounded/ip';
import type { Problem } from './problem.ts';

/** Reads texts of the objects; what is none is left out and told, the rest counts. */
export interface ObjectReader {
  readonly problems: Problem[];
  /** In order. */
  prefixes(where: string, texts: readonly string[] | undefined): Prefix[];
  /** In the order of the object, which says which address is the main one; in the canonical spelling. */
  addresses(where: string, texts: readonly string[] | undefined): string[];
}

export const objectReader = (): ObjectReader => {
  const problems: Problem[] = [];
  const readAll = <T>(
    texts: readonly string[] | undefined,
    read: (text: string) => T,
    reason: string,
    where: string,
  ): T[] =>
    (texts ?? []).flatMap((text) => {
      try {
        return [read(text)];
      } catch (error) {
        if (!(error instanceof AddressSyntaxError)) throw error;
        problems.push({ reason, message: `${where}: ${error.message}` });
        return [];
      }
    });
  return {
    problems,
    prefixes: (where, texts) => readAll(texts, parsePrefix, 'InvalidCIDR', where).sort(comparePrefixes),
    addresses: (where, texts) => readAll(texts, (text) => formatAddress(parseAddress(text)), 'InvalidAddress', where),
  };
};
