import type { Link, Route, RouteSocket } from '@unbounded/netlink';
import { isOurs } from './devices.ts';

/** RTPROT_RA (linux/rtnetlink.h): the kernel made the route from a router advertisement. */
const RTPROT_RA = 9;
const DEFAULT_V6 = '::/0';

const devicesOf = ({ link, nexthops }: Route): number[] =>
  [link, ...(nexthops ?? []).map((nexthop) => nexthop.link)].filter((index) => index !== undefined);

const ARPHRD_ETHER = 1;

/** Devices without a kind are the hardware of the node (or of a virtual machine): an advertisement may yet come. */
const mayLearn = ({ kind, hardwareType }: Link): boolean => kind === undefined && hardwareType === ARPHRD_ETHER;

/** Names of the devices from which the node has, or may get, a default route by router advertisement. */
export const advertisementDevices = async (net: RouteSocket): Promise<string[]> => {
  const [routes, links] = await Promise.all([net.routes.list({ family: 6 }), net.links.list()]);
  const learned = new Set(
    routes.filter(({ dst, protocol }) => dst === DEFAULT_V6 && protocol === RTPROT_RA).flatMap(devicesOf),
  );
  return links.filter((link) => !isOurs(link) && (learned.has(link.index) || mayLearn(link))).map(({ name }) => name);
};
