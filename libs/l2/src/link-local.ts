import { type Address, linkLocalOf } from '@unbounded/ip';
import type { PlannedNeighbor, PlannedPort } from './planned.ts';

/**
 * Link-local addresses of endpoints: no object has them, since each follows from its MAC address. A kernel asks whether an IPv6
 * neighbor is still there from this address (RFC 4861 7.3.3), and gives the neighbor up, with a packet, when that is never answered.
 */

/** Addresses that a port may speak for: where it has IPv6, its link-local one as well. */
export const addressesOfPort = ({ mac, addresses }: Pick<PlannedPort, 'mac' | 'addresses'>): readonly Address[] => {
  if (!addresses.some(({ family }) => family === 6)) return addresses;
  const added = linkLocalOf(mac);
  return addresses.some(({ family, value }) => family === 6 && value === added.value)
    ? addresses
    : [...addresses, added];
};

/** With those of link-local addresses, one for each MAC address that has IPv6. An entry that is listed stays as it is. */
export const withLinkLocals = (neighbors: readonly PlannedNeighbor[]): readonly PlannedNeighbor[] => {
  const keyOf = ({ network, ip }: PlannedNeighbor): string => `${network} ${ip.family} ${ip.value}`;
  const known = new Set(neighbors.map(keyOf));
  const added = neighbors
    .filter(({ ip }) => ip.family === 6)
    .map(({ network, mac }): PlannedNeighbor => ({ network, mac, ip: linkLocalOf(mac) }))
    .filter((one) => !known.has(keyOf(one)) && known.add(keyOf(one)));
  return [...neighbors, ...added];
};
