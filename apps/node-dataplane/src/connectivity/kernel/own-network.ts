import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import {
  addressBits,
  AddressSet,
  addressToBytes,
  formatPrefix,
  parseAddress,
  parsePrefix,
  type Prefix,
  prefixOf,
} from '@unbounded/ip';
import { type Link, type LinkAddress, type Route, ROUTE_TABLES, type RouteSocket } from '@unbounded/netlink';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { ofFamily } from '../../kernel/address-sets.ts';
import { familyOf } from '../../kernel/nft-family.ts';
import { isOurs } from './devices.ts';

/** What our nftables table must know of the node's addresses and routes, since no expression of nftables can tell it. */

export interface OwnNetwork {
  /** The node's addresses on loopback and dummy devices (BGP to the host): packets reach them by any device. */
  readonly floating: readonly string[];
  /** Devices besides the one of an own address that stand in its subnet, and the VRF of that: they take packets for it as well. */
  readonly besideOwn: readonly string[];
  /** Devices that lead to native neighbors, and what these may send by them while their link changes its protocol. */
  readonly native: readonly { readonly device: string; readonly prefixes: readonly string[] }[];
  /** Subnets of devices that are not ours, loopback aside. */
  readonly onLink: readonly string[];
  /** Devices among which the kernel chooses for an IPv6 destination. */
  readonly alternatives: readonly (readonly string[])[];
}

export const NO_NETWORK: OwnNetwork = {
  floating: [],
  besideOwn: [],
  native: [],
  onLink: [],
  alternatives: [],
};

export interface Listed {
  readonly links: readonly Link[];
  readonly addresses: readonly LinkAddress[];
  /** IPv6; IPv4 as well where there are neighbors of it to find. */
  readonly routes: readonly Route[];
}

/** Whose network it is, and which neighbors are to be found in it. */
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
const createNames = (links: readonly Link[]) => {
  const byIndex = new Map(links.map((link) => [link.index, link]));
  return (indexes: readonly number[], alsoVrfOf = indexes): string[] => {
    const vrfs = alsoVrfOf
      .map((index) => byIndex.get(byIndex.get(index)?.master ?? 0))
      .filter((master) => master?.kind?.kind === 'vrf');
    const found = [...indexes.map((index) => byIndex.get(index)), ...vrfs];
    return [...new Set(found.flatMap((link) => (link && !isOurs(link) ? [link.name] : [])))].sort();
  };
};

const devicesBesideOwn = ({ links, addresses }: Listed, own: readonly string[]): string[] => {
  const ofOwn = addresses.filter((one) => own.includes(bare(one)));
  const subnets = new Set(ofOwn.map(subnetOf));
  const inSubnet = addresses.filter((one) => subnets.has(subnetOf(one))).map(({ link }) => link);
  return createNames(links)(
    inSubnet,
    ofOwn.map(({ link }) => link),
  );
};

const isForeign = ({ table, protocol }: Route): boolean => table !== ROUTE_TABLES.local && protocol !== ROUTE_PROTOCOL;

interface OnLink {
  readonly links: ReadonlyMap<string, readonly number[]>;
  /** Of the prefixes, the longest first. */
  readonly lengths: readonly number[];
}

/** By routes without a next hop. */
const onLinkBy = (routes: readonly Route[]): OnLink => {
  const ways = routes.flatMap(({ dst, link, gateway, nexthops = [] }) =>
    [{ link, gateway }, ...nexthops].flatMap((hop) =>
      hop.link === undefined || hop.gateway !== undefined ? [] : [{ to: parsePrefix(dst), link: hop.link }],
    ),
  );
  const links = Map.groupBy(ways, ({ to }) => formatPrefix(to));
  return {
    links: new Map([...links].map(([prefix, same]) => [prefix, same.map(({ link }) => link)])),
    lengths: [...new Set(ways.map(({ to }) => to.length))].sort((a, b) => b - a),
  };
};

/** By the longest of the routes to a neighbor; of several metrics, by each. */
const linksTo = (neighbor: string, { links, lengths }: OnLink): readonly number[] => {
  const address = parseAddress(neighbor);
  for (const length of lengths.filter((one) => one <= addressBits(address.family))) {
    const found = links.get(formatPrefix(prefixOf(address, length)));
    if (found) return found;
  }
  return [];
};

/** As the kernel finds next hops: by the main table, and by another one where that has no way. */
const linksByTables = (routes: readonly Route[]): ((neighbor: string) => readonly number[]) => {
  const foreign = routes.filter((route) => isForeign(route) && route.type === 'unicast');
  const [main, others] = [
    onLinkBy(foreign.filter(({ table }) => table === ROUTE_TABLES.main)),
    onLinkBy(foreign.filter(({ table }) => table !== ROUTE_TABLES.main)),
  ];
  return (neighbor) => {
    const found = linksTo(neighbor, main);
    return found.length > 0 ? found : linksTo(neighbor, others);
  };
};

/** Of blocks within each other the longest prefix decides by which device what is inside comes. */
const nativeBy = ({ links, routes }: Listed, neighbors: NonNullable<Looked['alsoPlainBy']>): OwnNetwork['native'] => {
  if (neighbors.length === 0) return [];
  const [linksOf, namesOf] = [linksByTables(routes), createNames(links)];
  const ways = neighbors.map(({ prefix, gateways }) => ({
    prefix: parsePrefix(prefix),
    devices: namesOf(gateways.flatMap((gateway) => linksOf(gateway))),
  }));
  return [...new Set(ways.flatMap(({ devices }) => devices))].sort().map((device) => {
    const [inside, outside] = [true, false].map((isBy) =>
      ways.filter(({ devices }) => devices.includes(device) === isBy).map(({ prefix }) => prefix),
    ) as [Prefix[], Prefix[]];
    return { device, prefixes: AddressSet.byLongestPrefix(inside, outside).toPrefixes().map(formatPrefix) };
  });
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
    native: nativeBy(listed, alsoPlainBy),
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
  const hasIpv4Neighbors = (looked.alsoPlainBy ?? []).some(({ gateways }) => ofFamily('ip', gateways).length > 0);
  const [links, ...routes] = await Promise.all([
    net.links.list(),
    net.routes.list({ family: 6 }),
    ...(hasIpv4Neighbors ? [net.routes.list({ family: 4 })] : []),
  ]);
  return describeNetwork({ links, addresses, routes: routes.flat() }, looked);
};
