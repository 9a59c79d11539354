import type { ElementsChange, SetSpec } from '@unbounded/nftables';

/** Tables that differ in a few addresses: the kernel need not get all of them anew. */

interface Content {
  readonly sets?: readonly SetSpec[];
}

const withoutElements = ({ sets = [], ...content }: Content): string =>
  JSON.stringify({ ...content, sets: sets.map((set) => (set.single ? { ...set, elements: [] } : set)) });

const difference = ({ elements, ...set }: SetSpec, others: readonly string[]): SetSpec[] => {
  const known = new Set(others);
  const missing = elements.filter((element) => !known.has(element));
  return missing.length === 0 ? [] : [{ ...set, elements: missing }];
};

/** What makes the one content the other; undefined: they differ in more than elements of sets of single addresses. */
export const elementChange = <T extends Content>(from: T, to: T): Required<ElementsChange> | undefined => {
  if (withoutElements(from) !== withoutElements(to)) return undefined;
  // The same sets, in the same order.
  const pairs = (from.sets ?? []).map((set, index) => [set, to.sets![index]!] as const).filter(([set]) => set.single);
  return {
    add: pairs.flatMap(([before, after]) => difference(after, before.elements)),
    remove: pairs.flatMap(([before, after]) => difference(before, after.elements)),
  };
};
