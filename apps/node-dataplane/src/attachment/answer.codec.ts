import { addressToBytes, parseAddress } from '@unbounded/ip';

/**
 * What the CNI binary gets (apps/cni/README.md): an exit code and a standard output, and before these interfaces of the pod to which it gives
 * their addresses. The binary may enter the pod's network namespace, the agent may not.
 */

export interface SettledInterface {
  readonly name: string;
  /** With prefix lengths. */
  readonly addresses: readonly string[];
}

const MARK = 0xff;
const [NAME_BYTES, ADDRESS_BYTES, MOST_INTERFACES, MOST_ADDRESSES] = [16, 16, 16, 16];

const encodeAddress = (text: string): Buffer => {
  const [address, length] = [parseAddress(text.split('/')[0]!), Number(text.split('/')[1])];
  const most = address.family === 4 ? 32 : 128;
  if (!Number.isInteger(length) || length < 0 || length > most)
    throw new RangeError(`address "${text}": must have a prefix length of at most ${most}`);
  const bytes = Buffer.alloc(2 + ADDRESS_BYTES);
  bytes.set([address.family, length]);
  bytes.set(addressToBytes(address), 2);
  return bytes;
};

const encodeInterface = ({ name, addresses }: SettledInterface): Buffer => {
  const length = Buffer.byteLength(name);
  if (length === 0 || length >= NAME_BYTES || name.includes('\0'))
    throw new RangeError(`interface "${name}": must have 1 to ${NAME_BYTES - 1} bytes, none of them zero`);
  if (addresses.length > MOST_ADDRESSES)
    throw new RangeError(`interface ${name} has ${addresses.length} addresses: must be at most ${MOST_ADDRESSES}`);
  const head = Buffer.alloc(NAME_BYTES + 1);
  head.write(name);
  head[NAME_BYTES] = addresses.length;
  return Buffer.concat([head, ...addresses.map(encodeAddress)]);
};

/** @throws RangeError that names field and value */
export const encodeAnswer = (answer: {
  readonly exitCode: number;
  readonly output: string;
  readonly settle?: readonly SettledInterface[];
}): Buffer => {
  const { exitCode, output, settle = [] } = answer;
  if (settle.length > MOST_INTERFACES)
    throw new RangeError(`${settle.length} interfaces to settle: must be at most ${MOST_INTERFACES}`);
  const interfaces = settle.length === 0 ? [] : [Buffer.of(MARK, settle.length), ...settle.map(encodeInterface)];
  return Buffer.concat([...interfaces, Buffer.of(exitCode), Buffer.from(output)]);
};
