/** By code units, so that the order is the same on every machine. */
export const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The first difference decides: `firstDifference(a.priority - b.priority, compareTexts(a.name, b.name))`. */
export const firstDifference = (...differences: readonly number[]): number =>
  differences.find((difference) => difference !== 0) ?? 0;

/** The list under each key, in the order of the items. */
export const groupBy = <K, T>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, T[]> => {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
};
