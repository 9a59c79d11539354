/** The IP version: 4 (32 bits, RFC 791) or 6 (128 bits, RFC 8200). */
export type Family = 4 | 6;

/** One address. `value` is the address as an unsigned number, the first octet most significant. */
export interface Address {
  readonly family: Family;
  readonly value: bigint;
}

/** The text is no address or prefix; the message says what is wrong and the valid input. */
export class AddressSyntaxError extends Error {
  override readonly name = 'AddressSyntaxError';
}

/** Width of an address in bits. */
export const addressBits = (family: Family): 32 | 128 => (family === 4 ? 32 : 128);

const LONGEST_TEXT = 45; // an IPv6 address with a dotted IPv4 tail (INET6_ADDRSTRLEN less its NUL)

const parseV4 = (text: string): bigint | undefined => {
  const octets = text.split('.');
  if (octets.length !== 4) return undefined;
  let value = 0;
  for (const octet of octets) {
    // A leading zero is refused: some parsers read it as octal, and two readings of one address are a security hole.
    if (!/^(0|[1-9][0-9]{0,2})$/.test(octet) || Number(octet) > 255) return undefined;
    value = value * 256 + Number(octet);
  }
  return BigInt(value);
};

const parseGroups = (text: string): number[] | undefined => {
  if (text === '') return [];
  const groups: number[] = [];
  const parts = text.split(':');
  for (const [index, part] of parts.entries()) {
    if (part.includes('.')) {
      const tail = index === parts.length - 1 ? parseV4(part) : undefined;
      if (tail === undefined) return undefined;
      groups.push(Number(tail >> 16n), Number(tail & 0xffffn));
    } else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16));
    else return undefined;
  }
  return groups;
};

const parseV6 = (text: string): bigint | undefined => {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const head = parseGroups(halves[0] ?? '');
  const tail = halves.length === 2 ? parseGroups(halves[1] ?? '') : [];
  if (!head || !tail) return undefined;
  const zeros = 8 - head.length - tail.length;
  if (halves.length === 2 ? zeros < 1 : zeros !== 0) return undefined;
  return [...head, ...Array<number>(zeros).fill(0), ...tail].reduce((sum, group) => (sum << 16n) | BigInt(group), 0n);
};

/** Reads `192.0.2.1` or `2001:db8::1` (no zone, no port). @throws AddressSyntaxError */
export const parseAddress = (text: string): Address => {
  const family: Family = text.includes(':') ? 6 : 4;
  const value = text.length > LONGEST_TEXT ? undefined : family === 6 ? parseV6(text) : parseV4(text);
  if (value === undefined) {
    throw new AddressSyntaxError(
      `"${text.slice(0, LONGEST_TEXT + 5)}" is not an IP address: write it like 192.0.2.1 or 2001:db8::1`,
    );
  }
  return { family, value };
};

/** Like {@link parseAddress}, but undefined instead of an error: for text that may be a name. */
export const tryParseAddress = (text: string): Address | undefined => {
  try {
    return parseAddress(text);
  } catch {
    return undefined;
  }
};

const formatV6 = (value: bigint): string => {
  const groups = Array.from({ length: 8 }, (_, index) => Number((value >> BigInt(112 - 16 * index)) & 0xffffn));
  let [bestStart, bestLength] = [-1, 1]; // RFC 5952 4.2.2: a single zero group is not shortened
  for (let start = 0; start < 8; start++) {
    let length = 0;
    while (start + length < 8 && groups[start + length] === 0) length++;
    if (length > bestLength) [bestStart, bestLength] = [start, length];
  }
  const hex = (part: number[]): string => part.map((group) => group.toString(16)).join(':');
  if (bestStart < 0) return hex(groups);
  return `${hex(groups.slice(0, bestStart))}::${hex(groups.slice(bestStart + bestLength))}`;
};

/** The canonical text (RFC 5952 for IPv6). */
export const formatAddress = ({ family, value }: Address): string =>
  family === 6 ? formatV6(value) : [24n, 16n, 8n, 0n].map((shift) => Number((value >> shift) & 0xffn)).join('.');

/** The 4 or 16 bytes in network order. */
export const addressToBytes = ({ family, value }: Address): Uint8Array => {
  const length = addressBits(family) / 8;
  return Uint8Array.from({ length }, (_, index) => Number((value >> BigInt(8 * (length - 1 - index))) & 0xffn));
};

/** Reads 4 or 16 bytes in network order. @throws AddressSyntaxError for any other length */
export const addressFromBytes = (bytes: Uint8Array): Address => {
  if (bytes.length !== 4 && bytes.length !== 16) {
    throw new AddressSyntaxError(`${bytes.length} bytes are not an address: an IPv4 address has 4, an IPv6 address 16`);
  }
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  return { family: bytes.length === 4 ? 4 : 6, value };
};
