/**
 * Puts keys into numbered slices of limited size. A key stays where it is; a new one goes to the first slice with room, so that what
 * comes or goes changes one slice.
 * @param order keys, sorted
 * @param former the number of the slice that a key is in; a number that is not from 0 up counts as none
 */
export const placeKeys = (
  order: readonly string[],
  former: ReadonlyMap<string, number>,
  capacity: number,
): ReadonlyMap<string, number> => {
  const sizes: number[] = [];
  const placed = new Map<string, number>();
  const put = (key: string, slice: number): void => {
    sizes[slice] = (sizes[slice] ?? 0) + 1;
    placed.set(key, slice);
  };
  for (const key of order) {
    const slice = former.get(key);
    if (slice !== undefined && slice >= 0 && (sizes[slice] ?? 0) < capacity) put(key, slice);
  }
  let first = 0; // slices before it are full
  for (const key of order) {
    if (placed.has(key)) continue;
    while ((sizes[first] ?? 0) >= capacity) first++;
    put(key, first);
  }
  return placed;
};
