import type { Link, Route, RouteSocket } from '@unbounded/netlink';
import { isOurs } from './devices.ts';

/** RTPROT_RA (linux/rtnetlink.h): the kernel made the route from a router advertisement. */
const RTPROT_RA = 9;
const DEFAULT_V6 = '::/0';

const devicesOf = ({ link, nexthops }: Route): number[] =>
  [link, ...(nexthops ?? []).map((nexthop) => nexthop.link)].filter((index) => index !== undefined);

const ARPHRD_ETHER = 1;

/** What an uplink may be besides hardware, as the kernel names the kinds. */
const UPLINK_KINDS = new Set(['bond', 'team', 'vlan']);

/** Devices without a kind are the hardware of the node (or of a virtual machine): an advertisement may yet come. */
const isUplink = ({ kind, hardwareType }: Link): boolean =>
  hardwareType === ARPHRD_ETHER && (kind === undefined || (kind.kind === 'other' && UPLINK_KINDS.has(kind.name)));

/** A bridge only with an uplink as a port: one whose ports are containers must not learn from them. */
const mayLearn = (link: Link, links: readonly Link[]): boolean =>
  isUplink(link) ||
  (link.kind?.kind === 'bridge' && links.some((port) => port.master === link.index && isUplink(port)));

/** Names of the devices from which the node has, or may get, a default route by router advertisement. */
export const advertisementDevices = async (net: RouteSocket): Promise<string[]> => {
  const [routes, links] = await Promise.all([net.routes.list({ family: 6 }), net.links.list()]);
  const learned = new Set(
    routes.filter(({ dst, protocol }) => dst === DEFAULT_V6 && protocol === RTPROT_RA).flatMap(devicesOf),
  );
  return links
    .filter((link) => !isOurs(link) && (learned.has(link.index) || mayLearn(link, links)))
    .map(({ name }) => name);
};
