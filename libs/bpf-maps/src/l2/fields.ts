import { addressFromBytes, addressToBytes, formatAddress, parseAddress } from '@unbounded/ip';
import { setBytes } from '../endpoints.ts';

/** Fields that several records of L2 have. */

export const LITTLE = true;

const [ADDRESS_BYTES, LOCATOR_BYTES] = [16, 8];
/** ::ffff:0:0/96 (RFC 4291 2.5.5.2): IPv4 addresses stand there. */
const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

export const writeAddress = (text: string, view: DataView, at: number): void => {
  const bytes = addressToBytes(parseAddress(text));
  setBytes(view, at, bytes.length === ADDRESS_BYTES ? bytes : Uint8Array.from([...MAPPED, ...bytes]));
};

export const readAddress = (view: DataView, at: number): string => {
  const bytes = new Uint8Array(view.buffer, view.byteOffset + at, ADDRESS_BYTES);
  const isMapped = MAPPED.every((byte, index) => bytes[index] === byte);
  return formatAddress(addressFromBytes(isMapped ? bytes.subarray(MAPPED.length) : bytes));
};

/** The upper 64 bits of a node's SIDs, as the address whose lower half is zero. */
export const writeLocator = (text: string, view: DataView, at: number): void => {
  const bytes = addressToBytes(parseAddress(text));
  if (bytes.length !== ADDRESS_BYTES || bytes.subarray(LOCATOR_BYTES).some((byte) => byte !== 0))
    throw new RangeError(`locator is ${text}: it must be an IPv6 address whose lower 64 bits are zero`);
  setBytes(view, at, bytes.subarray(0, LOCATOR_BYTES));
};

export const readLocator = (view: DataView, at: number): string => {
  const bytes = new Uint8Array(ADDRESS_BYTES);
  bytes.set(new Uint8Array(view.buffer, view.byteOffset + at, LOCATOR_BYTES));
  return formatAddress(addressFromBytes(bytes));
};

export const clear = (view: DataView, at: number, size: number): void => setBytes(view, at, new Uint8Array(size));
