import { addressFromBytes, addressToBytes, formatAddress, parseAddress } from '@unbounded/ip';
import type { Codec } from './codec.ts';
import { setBytes } from './endpoints.ts';

/** The node's addresses of echoes, in its own blocks; absent: it sends none of that family. */
export interface EchoAddresses {
  readonly ipv4?: string;
  readonly ipv6?: string;
}

const [IPV4, IPV6] = [4, 16];

const bytesOf = (field: string, text: string | undefined, length: number): Uint8Array => {
  if (text === undefined) return new Uint8Array(length);
  const bytes = addressToBytes(parseAddress(text));
  if (bytes.length !== length)
    throw new RangeError(`${field} is ${text}: it must be an ${length === IPV4 ? 'IPv4' : 'IPv6'} address`);
  return bytes;
};

const textAt = (view: DataView, offset: number, length: number): string | undefined => {
  const bytes = new Uint8Array(view.buffer, view.byteOffset + offset, length);
  return bytes.every((byte) => byte === 0) ? undefined : formatAddress(addressFromBytes(bytes));
};

/** struct echo_addresses, 20 bytes, as on the wire. The only key of `unbounded_echo` is that of `unbounded_config`. */
export const echoAddresses: Codec<EchoAddresses> = {
  size: IPV4 + IPV6,
  write({ ipv4, ipv6 }, view, offset) {
    const [four, sixteen] = [bytesOf('ipv4', ipv4, IPV4), bytesOf('ipv6', ipv6, IPV6)];
    setBytes(view, offset, four);
    setBytes(view, offset + IPV4, sixteen);
  },
  read(view, offset) {
    const [ipv4, ipv6] = [textAt(view, offset, IPV4), textAt(view, offset + IPV4, IPV6)];
    return { ...(ipv4 === undefined ? {} : { ipv4 }), ...(ipv6 === undefined ? {} : { ipv6 }) };
  },
};
