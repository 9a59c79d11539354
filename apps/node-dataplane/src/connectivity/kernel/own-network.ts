import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import {
  addressToBytes,
  containsAddress,
  formatPrefix,
  parseAddress,
  parsePrefix,
  type Prefix,
  prefixOf,
} from '@unbounded/ip';
import { type Link, type LinkAddress, type Route, ROUTE_TABLES, type RouteSocket } from '@unbounded/netlink';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { ofFamily } from '../../kernel/address-sets.ts';
import { type Family, familyOf } from '../../kernel/nft-family.ts';
import { isOurs } from './devices.ts';

/** What our nftables table must know of the node's addresses and routes, since no expression of nftables can tell it. */

export interface OwnNetwork {
  /** The node's addresses on loopback and dummy devices (BGP to the host): packets reach them by any device. */
  readonly floating: readonly string[];
  /** Devices besides the one of an own address that stand in its subnet, and the VRF of that: they take packets for it as well. */
  readonly besideOwn: readonly string[];
  /** Devices that lead without a next hop to neighbors, by the family of these, and their VRFs. */
  readonly towards: Readonly<Record<Family, readonly string[]>>;
  /** Subnets of devices that are not ours, loopback aside. */
  readonly onLink: readonly string[];
  /** Devices among which the kernel chooses for an IPv6 destination. */
  readonly alternatives: readonly (readonly string[])[];
}

export const NO_NETWORK: OwnNetwork = {
  floating: [],
  besideOwn: [],
  towards: { ip: [], ip6: [] },
  onLink: [],
  alternatives: [],
};

export interface Listed {
  readonly links: readonly Link[];
  readonly addresses: readonly LinkAddress[];
  /** IPv6; IPv4 as well where there are neighbors of it to find. */
  readonly routes: readonly Route[];
}

/** Whose network it is, and who is to be found in it. */
type Looked = Pick<KernelPlan, 'ownAddresses' | 'alsoPlainBy'>;

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

/** Names of devices that are not ours and, of some of them, their VRFs: what comes by those the IP stack sees as coming by the VRF. */
const namesOf = (links: readonly Link[], indexes: readonly number[], alsoVrfOf = indexes): string[] => {
  const byIndex = new Map(links.map((link) => [link.index, link]));
  const vrfs = alsoVrfOf
    .map((index) => byIndex.get(byIndex.get(index)?.master ?? 0))
    .filter((master) => master?.kind?.kind === 'vrf');
  const found = [...indexes.map((index) => byIndex.get(index)), ...vrfs];
  return [...new Set(found.flatMap((link) => (link && !isOurs(link) ? [link.name] : [])))].sort();
};

const devicesBesideOwn = ({ links, addresses }: Listed, own: readonly string[]): string[] => {
  const ofOwn = addresses.filter((one) => own.includes(bare(one)));
  const subnets = new Set(ofOwn.map(subnetOf));
  const inSubnet = addresses.filter((one) => subnets.has(subnetOf(one))).map(({ link }) => link);
  return namesOf(
    links,
    inSubnet,
    ofOwn.map(({ link }) => link),
  );
};

const isForeign = ({ table, protocol }: Route): boolean => table !== ROUTE_TABLES.local && protocol !== ROUTE_PROTOCOL;

interface OnLink {
  readonly to: Prefix;
  readonly link: number;
}

const onLinkRoutes = (routes: readonly Route[]): OnLink[] =>
  routes
    .filter((route) => isForeign(route) && route.type === 'unicast')
    .flatMap((route) =>
      [route, ...(route.nexthops ?? [])].flatMap(({ link, gateway }) =>
        link === undefined || gateway !== undefined ? [] : [{ to: parsePrefix(route.dst), link }],
      ),
    );

/** By the longest of the node's routes to a neighbor; of several metrics, by each. */
const linksTo = (routes: readonly OnLink[], neighbor: string): number[] => {
  const address = parseAddress(neighbor);
  const leading = routes.filter(({ to }) => containsAddress(to, address));
  const longest = Math.max(...leading.map(({ to }) => to.length));
  return leading.filter(({ to }) => to.length === longest).map(({ link }) => link);
};

const devicesTowards = ({ links, routes }: Listed, neighbors: readonly string[]): OwnNetwork['towards'] => {
  const onLink = neighbors.length === 0 ? [] : onLinkRoutes(routes);
  const towards = (family: Family): string[] =>
    namesOf(
      links,
      ofFamily(family, neighbors).flatMap((neighbor) => linksTo(onLink, neighbor)),
    );
  return { ip: towards('ip'), ip6: towards('ip6') };
};

/** One destination with several devices: by one route, or by several of one metric (those of router advertisements). */
const choices = (routes: readonly Route[]): Set<number>[] => {
  const ofIpv6 = routes.filter((route) => isForeign(route) && familyOf(route.dst) === 'ip6');
  const same = Map.groupBy(ofIpv6, ({ dst, table, metric }) => `${dst} ${table} ${metric}`);
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

export const describeNetwork = (listed: Listed, { ownAddresses, alsoPlainBy = [] }: Looked): OwnNetwork => {
  const { links, addresses, routes } = listed;
  const names = new Map(links.map(({ index, name }) => [index, name]));
  const floating = new Set(links.filter(isFloating).map(({ index }) => index));
  const foreign = new Set(links.filter((link) => !isOurs(link) && !isFloating(link)).map(({ index }) => index));
  return {
    floating: [...new Set(addresses.filter(({ link }) => floating.has(link)).map(bare))]
      .filter((address) => !isLoopbackOrLinkLocal(address))
      .sort(),
    besideOwn: devicesBesideOwn(listed, ownAddresses),
    towards: devicesTowards(listed, alsoPlainBy),
    onLink: [...new Set(addresses.filter(({ link }) => foreign.has(link)).map(subnetOf))].sort(),
    alternatives: joined(choices(routes))
      .map((indexes) => [...indexes].flatMap((index) => names.get(index) ?? []).sort())
      .sort((a, b) => (a.join() < b.join() ? -1 : 1)),
  };
};

export const findNetwork = async (
  net: Pick<RouteSocket, 'links' | 'routes'>,
  addresses: readonly LinkAddress[],
  looked: Looked,
): Promise<OwnNetwork> => {
  const hasIpv4Neighbors = ofFamily('ip', looked.alsoPlainBy ?? []).length > 0;
  const [links, ...routes] = await Promise.all([
    net.links.list(),
    net.routes.list({ family: 6 }),
    ...(hasIpv4Neighbors ? [net.routes.list({ family: 4 })] : []),
  ]);
  return describeNetwork({ links, addresses, routes: routes.flat() }, looked);
};
