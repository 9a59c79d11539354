import { type Address, addressBits, AddressSet, hostPrefix, lastAddress, type Prefix } from '@unbounded/ip';

/** Addresses of a Network for endpoints that ask for none. */

/** Of a block these are no station's: network and broadcast of IPv4 (RFC 3021 has neither), the routers' anycast of IPv6 (RFC 4291 2.6.1). */
const reservedOf = (block: Prefix): Prefix[] => {
  const hostBits = addressBits(block.family) - block.length;
  if (hostBits <= 1) return [];
  const first = hostPrefix({ family: block.family, value: block.address });
  return block.family === 4 ? [first, hostPrefix(lastAddress(block))] : [first];
};

/** Whether no station of the block that holds it may have it. */
export const isReserved = (prefixes: readonly Prefix[], address: Address): boolean =>
  AddressSet.of(prefixes.flatMap(reservedOf)).has(address);

const sizeOf = ({ family, length }: Prefix): bigint => 1n << BigInt(addressBits(family) - length);

/** The free address at a place that the seed decides. */
const chooseFree = (free: readonly Prefix[], seed: bigint): Address | undefined => {
  const size = free.reduce((sum, block) => sum + sizeOf(block), 0n);
  if (size === 0n) return undefined;
  let place = seed % size;
  for (const block of free) {
    if (place < sizeOf(block)) return { family: block.family, value: block.address + place };
    place -= sizeOf(block);
  }
  return undefined;
};

/** All addresses of a family have an owner. */
export class PoolExhaustedError extends Error {
  override readonly name = 'PoolExhaustedError';
}

export interface Pool {
  readonly prefixes: readonly Prefix[];
  readonly gateways: readonly Address[];
}

/**
 * A free address of each family that the network has. Nodes that choose at the same time choose different ones, as likely as there is room:
 * creating the Neighbor decides.
 * @param seed 64 bits at random
 * @throws PoolExhaustedError which names the family
 */
export const chooseAddresses = ({ prefixes, gateways }: Pool, taken: Iterable<Address>, seed: bigint): Address[] => {
  const used = AddressSet.of([...gateways, ...taken].map(hostPrefix));
  return ([4, 6] as const).flatMap((family) => {
    const blocks = prefixes.filter((block) => block.family === family);
    if (blocks.length === 0) return [];
    const free = AddressSet.of(blocks)
      .subtract(AddressSet.of(blocks.flatMap(reservedOf)))
      .subtract(used);
    const some = chooseFree(free.toPrefixes(), seed);
    if (!some) throw new PoolExhaustedError(`no IPv${family} address of the network is free`);
    return [some];
  });
};
