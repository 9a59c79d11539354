/** What one slice holds while slices are filled. */
export interface Fill<T> {
  /**
   * Takes the item if there is room for it; the first one always finds room.
   * @param stands it is in this slice already
   */
  readonly take: (item: T, stands: boolean) => boolean;
}

/**
 * Puts items into numbered slices of limited size. An item stays where it is while it fits there, those that come first in the order before
 * others; every other one goes to a slice with room, so that what comes or goes changes one slice.
 * @param former the number of the slice that a key is in; a number that is not from 0 up counts as none
 */
export const placeItems = <T extends { readonly key: string }>(
  order: readonly T[],
  former: ReadonlyMap<string, number>,
  createFill: () => Fill<T>,
): ReadonlyMap<string, number> => {
  const fills = new Map<number, Fill<T>>();
  const placed = new Map<string, number>();
  const put = (item: T, slice: number, stands: boolean): boolean => {
    const fill = fills.get(slice) ?? createFill();
    fills.set(slice, fill);
    const isTaken = fill.take(item, stands);
    if (isTaken) placed.set(item.key, slice);
    return isTaken;
  };
  for (const item of order) {
    const slice = former.get(item.key);
    if (slice !== undefined && slice >= 0) put(item, slice, true);
  }
  // One that had no room for an item is not tried again: otherwise many large items would each try all slices.
  let first = 0;
  for (const item of order) {
    if (placed.has(item.key)) continue;
    while (!put(item, first, false)) first++;
  }
  return placed;
};

/**
 * {@link placeItems} by number alone.
 * @param order keys, sorted
 */
export const placeKeys = (
  order: readonly string[],
  former: ReadonlyMap<string, number>,
  capacity: number,
): ReadonlyMap<string, number> =>
  placeItems(
    order.map((key) => ({ key })),
    former,
    () => {
      let size = 0;
      const take = (): boolean => {
        const hasRoom = size < capacity;
        if (hasRoom) size++;
        return hasRoom;
      };
      return { take };
    },
  );
