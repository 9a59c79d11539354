import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { addressToBytes, formatPrefix, parseAddress, prefixOf } from '@unbounded/ip';
import { type Link, type LinkAddress, type Route, ROUTE_TABLES, type RouteSocket } from '@unbounded/netlink';
import { isOurs } from './devices.ts';

/** What our nftables table must know of the node's addresses and routes, since no expression of nftables can tell it. */

export interface OwnNetwork {
  /** The node's addresses on loopback and dummy devices (BGP to the host): packets reach them by any device. */
  readonly floating: readonly string[];
  /** Devices besides the one of an own address that stand in its subnet, and the VRF of that: they take packets for it as well. */
  readonly besideOwn: readonly string[];
  /** Subnets of devices that are not ours, loopback aside. */
  readonly onLink: readonly string[];
  /** Devices among which the kernel chooses for an IPv6 destination. */
  readonly alternatives: readonly (readonly string[])[];
}

export const NO_NETWORK: OwnNetwork = { floating: [], besideOwn: [], onLink: [], alternatives: [] };

export interface Listed {
  readonly links: readonly Link[];
  readonly addresses: readonly LinkAddress[];
  /** IPv6. */
  readonly routes: readonly Route[];
}

const LOOPBACK = 772; // ARPHRD_LOOPBACK
const isFloating = (link: Link): boolean =>
  link.hardwareType === LOOPBACK || (link.kind?.kind === 'dummy' && !isOurs(link));
const bare = ({ address }: LinkAddress): string => address.split('/')[0]!;
const subnetOf = ({ address }: LinkAddress): string => {
  const [host, length] = address.split('/');
  return formatPrefix(prefixOf(parseAddress(host!), Number(length)));
};
const isLoopbackOrLinkLocal = (address: string): boolean => {
  const [first, second] = addressToBytes(parseAddress(address));
  return first === 127 || address === '::1' || (address.includes(':') && first === 0xfe && (second! & 0xc0) === 0x80);
};

const devicesBesideOwn = ({ links, addresses }: Listed, own: readonly string[]): string[] => {
  const byIndex = new Map(links.map((link) => [link.index, link]));
  const ofOwn = addresses.filter((one) => own.includes(bare(one)));
  const subnets = new Set(ofOwn.map(subnetOf));
  const inSubnet = addresses.filter((one) => subnets.has(subnetOf(one))).map(({ link }) => link);
  // The IP stack sees what comes by a device of a VRF as coming by the VRF.
  const vrfs = ofOwn
    .map(({ link }) => byIndex.get(byIndex.get(link)?.master ?? 0))
    .filter((master) => master?.kind?.kind === 'vrf');
  return [...inSubnet.map((index) => byIndex.get(index)), ...vrfs].flatMap((link) =>
    link && !isOurs(link) ? [link.name] : [],
  );
};

/** One destination with several devices: by one route, or by several of one metric (those of router advertisements). */
const choices = (routes: readonly Route[]): Set<number>[] => {
  const foreign = routes.filter(({ table, protocol }) => table !== ROUTE_TABLES.local && protocol !== ROUTE_PROTOCOL);
  const same = Map.groupBy(foreign, ({ dst, table, metric }) => `${dst} ${table} ${metric}`);
  return [...same.values()]
    .filter(([first]) => first!.dst !== 'ff00::/8' && !isLoopbackOrLinkLocal(first!.dst.split('/')[0]!))
    .map(
      (some) =>
        new Set(
          some
            .flatMap(({ link, nexthops = [] }) => [link, ...nexthops.map((hop) => hop.link)])
            .flatMap((index) => index ?? []),
        ),
    )
    .filter((indexes) => indexes.size > 1);
};

/** Sets that have an element in common become one. */
const joined = (sets: readonly Set<number>[]): Set<number>[] =>
  sets.reduce<Set<number>[]>((done, one) => {
    const touching = done.filter((other) => !other.isDisjointFrom(one));
    const all = touching.reduce((sum, other) => sum.union(other), one);
    return [...done.filter((other) => !touching.includes(other)), all];
  }, []);

export const describeNetwork = (listed: Listed, ownAddresses: readonly string[]): OwnNetwork => {
  const { links, addresses, routes } = listed;
  const names = new Map(links.map(({ index, name }) => [index, name]));
  const floating = new Set(links.filter(isFloating).map(({ index }) => index));
  const foreign = new Set(links.filter((link) => !isOurs(link) && !isFloating(link)).map(({ index }) => index));
  return {
    floating: [...new Set(addresses.filter(({ link }) => floating.has(link)).map(bare))]
      .filter((address) => !isLoopbackOrLinkLocal(address))
      .sort(),
    besideOwn: [...new Set(devicesBesideOwn(listed, ownAddresses))].sort(),
    onLink: [...new Set(addresses.filter(({ link }) => foreign.has(link)).map(subnetOf))].sort(),
    alternatives: joined(choices(routes))
      .map((indexes) => [...indexes].flatMap((index) => names.get(index) ?? []).sort())
      .sort((a, b) => (a.join() < b.join() ? -1 : 1)),
  };
};

export const findNetwork = async (
  net: Pick<RouteSocket, 'links' | 'routes'>,
  addresses: readonly LinkAddress[],
  ownAddresses: readonly string[],
): Promise<OwnNetwork> => {
  const [links, routes] = await Promise.all([net.links.list(), net.routes.list({ family: 6 })]);
  return describeNetwork({ links, addresses, routes }, ownAddresses);
};
