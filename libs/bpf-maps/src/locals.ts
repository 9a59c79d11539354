import type { Codec } from './codec.ts';
import { readRemote, REMOTE, remoteBytes, setBytes } from './endpoints.ts';

/** The node's own underlay addresses, from which it sends tunnel packets to those who know it by them; absent: the kernel chooses. */
export interface LocalAddresses {
  readonly ipv4?: string;
  readonly ipv6?: string;
}

const IPV4 = 4;

/** struct local_addresses, 20 bytes. The only key of `unbounded_locals` is that of `unbounded_config`. */
export const localAddresses: Codec<LocalAddresses> = {
  size: IPV4 + REMOTE,
  write({ ipv4, ipv6 }, view, offset) {
    if (ipv4?.includes(':')) throw new RangeError(`ipv4 is ${ipv4}: it must be an IPv4 address`);
    if (ipv6 !== undefined && !ipv6.includes(':')) throw new RangeError(`ipv6 is ${ipv6}: it must be an IPv6 address`);
    setBytes(view, offset, remoteBytes(ipv4).subarray(0, IPV4));
    setBytes(view, offset + IPV4, remoteBytes(ipv6));
  },
  read(view, offset) {
    const { remote: ipv4 } = readRemote(view, offset, false);
    const { remote: ipv6 } = readRemote(view, offset + IPV4, true);
    return { ...(ipv4 === undefined ? {} : { ipv4 }), ...(ipv6 === undefined || ipv6 === '::' ? {} : { ipv6 }) };
  },
};
