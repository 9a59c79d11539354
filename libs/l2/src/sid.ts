import { type Address, formatPrefix, type Prefix } from '@unbounded/ip';

/**
 * Segment identifiers (RFC 8986 3.1) of the network: the locator of a node in the first 64 bits, then 16 bits of function, 32 of
 * argument, which is the number of the Network, and 16 that are zero. bpf/include/l2_sid.h reads the same.
 */

const LOCATOR_BITS = 64;
const [FUNCTION_SHIFT, NUMBER_SHIFT] = [48n, 16n];

/** End.DT2U (RFC 8986 4.11): one station's. End.DT2M (4.12): what is replicated. */
const BEHAVIORS = { DT2U: 1, DT2M: 2 } as const;
type Behavior = keyof typeof BEHAVIORS;

/** @throws RangeError where the block is no locator */
const checkLocator = (locator: Prefix): Prefix => {
  if (locator.family !== 6 || locator.length !== LOCATOR_BITS)
    throw new RangeError(`${formatPrefix(locator)} is no locator: must be an IPv6 block of /${LOCATOR_BITS}`);
  return locator;
};

/** @param networkNumber 1 to 16,777,215 */
export const sidOf = (locator: Prefix, behavior: Behavior, networkNumber: number): Address => ({
  family: 6,
  value:
    checkLocator(locator).address |
    (BigInt(BEHAVIORS[behavior]) << FUNCTION_SHIFT) |
    (BigInt(networkNumber) << NUMBER_SHIFT),
});
