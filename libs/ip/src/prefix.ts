import { type Address, AddressSyntaxError, addressBits, type Family, formatAddress, parseAddress } from './address.ts';

/** An address block. `address` is its first address; the bits behind `length` are zero. */
export interface Prefix {
  readonly family: Family;
  readonly address: bigint;
  /** Number of leading bits that all addresses of the block share. */
  readonly length: number;
}

const hostBits = ({ family, length }: Prefix): bigint => BigInt(addressBits(family) - length);

/** The block of `length` bits that holds the address. */
export const prefixOf = ({ family, value }: Address, length: number): Prefix => {
  if (!Number.isInteger(length) || length < 0 || length > addressBits(family)) {
    throw new AddressSyntaxError(`prefix length ${length} is not within 0..${addressBits(family)} of IPv${family}`);
  }
  const shift = BigInt(addressBits(family) - length);
  return { family, address: (value >> shift) << shift, length };
};

/** The /32 or /128 of one address. */
export const hostPrefix = (address: Address): Prefix => prefixOf(address, addressBits(address.family));

/** Reads `192.0.2.0/24` or `2001:db8::/32`. Host bits must be zero. @throws AddressSyntaxError */
export const parsePrefix = (text: string): Prefix => {
  const [addressText = '', lengthText, ...rest] = text.split('/');
  if (lengthText === undefined || rest.length > 0 || !/^(0|[1-9][0-9]{0,2})$/.test(lengthText)) {
    throw new AddressSyntaxError(
      `"${text.slice(0, 50)}" is not a CIDR: write address/length like 192.0.2.0/24 or 2001:db8::/32`,
    );
  }
  const address = parseAddress(addressText);
  const prefix = prefixOf(address, Number(lengthText));
  if (prefix.address !== address.value) {
    throw new AddressSyntaxError(`"${text}" has host bits set: the block that holds it is ${formatPrefix(prefix)}`);
  }
  return prefix;
};

/** Like {@link parsePrefix}, but undefined instead of an error: for text whose refusal is reported elsewhere. */
export const tryParsePrefix = (text: string): Prefix | undefined => {
  try {
    return parsePrefix(text);
  } catch {
    return undefined;
  }
};

export const formatPrefix = ({ family, address, length }: Prefix): string =>
  `${formatAddress({ family, value: address })}/${length}`;

/** The address `index` places after the block's first. @throws RangeError outside the block */
const addressAt = (prefix: Prefix, index: bigint): Address => {
  if (index < 0n || index >> hostBits(prefix) !== 0n) {
    throw new RangeError(`${formatPrefix(prefix)} has no address number ${index}`);
  }
  return { family: prefix.family, value: prefix.address + index };
};

export const lastAddress = (prefix: Prefix): Address => addressAt(prefix, (1n << hostBits(prefix)) - 1n);

/**
 * The first address a host may use: the network's own address is skipped in blocks that have one (IPv4 shorter than
 * /31, RFC 3021; IPv6 shorter than /127, whose first address is the subnet-router anycast address, RFC 4291 2.6.1).
 */
export const firstAddress = (prefix: Prefix): Address => addressAt(prefix, hostBits(prefix) > 1n ? 1n : 0n);

export const containsAddress = (prefix: Prefix, { family, value }: Address): boolean =>
  prefix.family === family && value >> hostBits(prefix) === prefix.address >> hostBits(prefix);

export const containsPrefix = (outer: Prefix, inner: Prefix): boolean =>
  outer.length <= inner.length && containsAddress(outer, { family: inner.family, value: inner.address });

export const overlaps = (a: Prefix, b: Prefix): boolean => containsPrefix(a, b) || containsPrefix(b, a);

/** Family, then address, then length. */
export const comparePrefixes = (a: Prefix, b: Prefix): number => {
  if (a.family !== b.family) return a.family - b.family;
  if (a.address !== b.address) return a.address < b.address ? -1 : 1;
  return a.length - b.length;
};

/** The prefixes in order, without those that another of them covers (and without repeats). */
export const withoutCovered = (prefixes: Iterable<Prefix>): Prefix[] => {
  const kept: Prefix[] = [];
  for (const prefix of [...prefixes].sort(comparePrefixes)) {
    const last = kept.at(-1); // in this order only the last kept one can cover the next
    if (!last || !containsPrefix(last, prefix)) kept.push(prefix);
  }
  return kept;
};
