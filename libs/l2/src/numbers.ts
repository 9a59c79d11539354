import { MAX_L2_NETWORK_NUMBER } from '@unbounded/crds';

/** A Network, as far as its number goes. */
interface NumberedNetwork {
  readonly name: string;
  /** Of its status. */
  readonly number?: number;
  /** Milliseconds since 1970 of its creation. */
  readonly createdMs: number;
}

const byAge = (a: NumberedNetwork, b: NumberedNetwork): number =>
  a.createdMs - b.createdMs || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

/**
 * The number of each Network. One that has a number keeps it, of two with one number the older; others get the lowest that nobody has.
 * @param retired numbers of Networks that are gone while endpoints of them stand: their frames may be on their way
 * @returns by name; a Network for which there is no number is not in it
 */
export const assignNumbers = (
  networks: readonly NumberedNetwork[],
  retired: ReadonlySet<number> = new Set(),
): ReadonlyMap<string, number> => {
  const owners = new Map<number, string>();
  for (const { name, number } of networks.toSorted(byAge))
    if (number !== undefined && !owners.has(number)) owners.set(number, name);
  const assigned = new Map([...owners].map(([number, name]) => [name, number]));
  let next = 1;
  for (const { name } of networks.toSorted(byAge)) {
    if (assigned.has(name)) continue;
    while (next <= MAX_L2_NETWORK_NUMBER && (owners.has(next) || retired.has(next))) next++;
    if (next > MAX_L2_NETWORK_NUMBER) break;
    owners.set(next, name);
    assigned.set(name, next);
  }
  return assigned;
};
