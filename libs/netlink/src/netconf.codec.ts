import { readAttributes } from './attribute.codec.ts';
import { afOf, ipFamily } from './address.codec.ts';
import { NetlinkDecodeError } from './message.codec.ts';
import type { Netconf } from './model/netconf.ts';

/** RTM_* (linux/rtnetlink.h). The kernel tells of a change; settings are written by way of /proc/sys/net. */
export const NETCONF_MESSAGE = { new: 80, delete: 81 } as const;
/** NETCONFA_* (linux/netconf.h). */
const NETCONFA = { ifindex: 1, forwarding: 2, rpFilter: 3 } as const;
/** NETCONFA_IFINDEX_ALL, NETCONFA_IFINDEX_DEFAULT. */
const [ALL, DEFAULT] = [-1, -2];

/** struct netconfmsg: u8 family; attributes begin at the next multiple of four. */
const HEADER_BYTES = 4;

const linkOf = (index: number): Netconf['link'] => {
  if (index === ALL) return 'all';
  return index === DEFAULT ? 'default' : index;
};

/** One RTM_NEWNETCONF or RTM_DELNETCONF. @throws NetlinkDecodeError, also for families other than IPv4 and IPv6 */
export const decodeNetconf = (body: Uint8Array): Netconf => {
  if (body.length < 1) throw new NetlinkDecodeError('netconf message of 0 bytes: struct netconfmsg alone has 1');
  const attributes = readAttributes(body.subarray(HEADER_BYTES));
  const [index, forwarding, rpFilter] = [
    attributes.get(NETCONFA.ifindex),
    attributes.get(NETCONFA.forwarding),
    attributes.get(NETCONFA.rpFilter),
  ];
  if (!index) throw new NetlinkDecodeError('netconf message without NETCONFA_IFINDEX');
  return {
    family: ipFamily(body[0]!),
    link: linkOf(index.i32),
    ...(forwarding && { forwarding: forwarding.i32 !== 0 }),
    ...(rpFilter && { rpFilter: rpFilter.i32 }),
  };
};

export const isIpNetconf = (body: Uint8Array): boolean => body[0] === afOf(4) || body[0] === afOf(6);
