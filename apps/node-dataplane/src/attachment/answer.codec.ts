import { addressBits, addressToBytes, tryParseAddress } from '@unbounded/ip';
import type { SettledInterface } from './hook.port.ts';

/**
 * What the CNI binary is answered (apps/cni/README.md): the exit code and the standard output; before them the interfaces
 * that it gives their addresses and sets up, if there are any.
 */
export interface Answer {
  readonly exitCode: number;
  readonly output: string;
  readonly settle?: readonly SettledInterface[];
}

const SETTLE_MARK = 0xff;
const MOST_INTERFACES = 16;
const MOST_ADDRESSES = 16;
/** IFNAMSIZ, with the NUL at the end. */
const NAME_SIZE = 16;
const ADDRESS_SIZE = 16;

/** Printable ASCII, but what the kernel (dev_valid_name) refuses in a name. */
const NAME = /^(?!\.{1,2}$)[!-.0-9;-~]{1,15}$/;
const LENGTH = /^(0|[1-9][0-9]{0,2})$/;

const invalid = (field: string, value: unknown, valid: string): RangeError =>
  new RangeError(`${field} is ${JSON.stringify(value)}: it must be ${valid}`);

const padded = (bytes: Uint8Array, size: number): Uint8Array => {
  const out = new Uint8Array(size);
  out.set(bytes);
  return out;
};

const countOf = ({ length }: readonly unknown[], field: string, most: number): Uint8Array => {
  if (length > most) throw invalid(`the length of ${field}`, length, `at most ${most}`);
  return Uint8Array.of(length);
};

/** No prefix: the bits of the host count. */
const encodeAddress = (text: string, field: string): Uint8Array => {
  const [addressText = '', lengthText = '', ...rest] = text.split('/');
  const address = tryParseAddress(addressText);
  const isLength = LENGTH.test(lengthText) && address && Number(lengthText) <= addressBits(address.family);
  if (!address || !isLength || rest.length > 0)
    throw invalid(field, text, 'an address with its prefix length, like 192.0.2.7/24 or 2001:db8::7/64');
  return Buffer.concat([
    Uint8Array.of(address.family, Number(lengthText)),
    padded(addressToBytes(address), ADDRESS_SIZE),
  ]);
};

const encodeInterface = ({ name, addresses }: SettledInterface, field: string): Uint8Array => {
  if (!NAME.test(name)) throw invalid(`${field}.name`, name, 'the name of an interface, 1 to 15 characters');
  return Buffer.concat([
    padded(Buffer.from(name), NAME_SIZE),
    countOf(addresses, `${field}.addresses`, MOST_ADDRESSES),
    ...addresses.map((address, index) => encodeAddress(address, `${field}.addresses[${index}]`)),
  ]);
};

const encodeInterfaces = (settle: readonly SettledInterface[]): Uint8Array =>
  Buffer.concat([
    Uint8Array.of(SETTLE_MARK),
    countOf(settle, 'settle', MOST_INTERFACES),
    ...settle.map((one, index) => encodeInterface(one, `settle[${index}]`)),
  ]);

/** @throws RangeError for what the binary would refuse */
export const encodeAnswer = ({ exitCode, output, settle = [] }: Answer): Uint8Array => {
  const most = settle.length > 0 ? 0 : SETTLE_MARK - 1;
  if (!Number.isInteger(exitCode) || exitCode < 0 || exitCode > most)
    throw invalid('exitCode', exitCode, most === 0 ? '0 where interfaces are settled' : `an integer from 0 to ${most}`);
  return Buffer.concat([
    ...(settle.length > 0 ? [encodeInterfaces(settle)] : []),
    Uint8Array.of(exitCode),
    Buffer.from(output),
  ]);
};
