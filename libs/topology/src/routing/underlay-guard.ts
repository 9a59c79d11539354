import {
  comparePrefixes,
  containsPrefix,
  formatAddress,
  formatPrefix,
  hostPrefix,
  parseAddress,
  type Prefix,
  SHORTEST_BLOCK,
  specialRangeIn,
  tryParsePrefix,
} from '@unbounded/ip';
import type { PeerLink } from '../links/links.plan.ts';
import type { LocalNode, ProtectedAddress } from '../links/local-node.ts';
import { relayAddress } from './endpoint-hosts.ts';
import { nearBlocks } from './near.ts';
import { networkSites } from '../world/reach.ts';
import { withheldOf } from './withheld.ts';
import type { Member, PoolModel, SiteModel, World } from '../world/world.ts';
import type { Problem } from '../world/problem.ts';

/**
 * What the overlay itself needs is never routed into it, whatever the objects list: endpoints of peers, the API server, the
 * default gateway and the node's own addresses. Nor are ranges that no other node has: loopback, link-local, multicast.
 */

/** Hosts by address, to be asked whether a block holds any. */
export const hostsIn = (addresses: readonly ProtectedAddress[]) => {
  const hosts = addresses
    .map(({ address, role }) => ({ prefix: hostPrefix(parseAddress(address)), role }))
    .sort((a, b) => comparePrefixes(a.prefix, b.prefix));
  return (block: Prefix): (typeof hosts)[number] | undefined => {
    const first = { ...block, length: -1 }; // in this order before every address of the block
    let [low, high] = [0, hosts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (comparePrefixes(hosts[middle]!.prefix, first) < 0) low = middle + 1;
      else high = middle;
    }
    const found = hosts[low];
    return found && containsPrefix(block, found.prefix) ? found : undefined;
  };
};

const describeRange = (block: Prefix): string | undefined => {
  const shortest = SHORTEST_BLOCK[block.family];
  if (block.length < shortest) return `is wider than a /${shortest}`;
  const special = specialRangeIn(block);
  return special && `holds ${special} addresses`;
};

/** Why a block is not routed, to follow its name; undefined: it may be. */
export const describeConflict = (block: Prefix, find: ReturnType<typeof hostsIn>): string | undefined => {
  const range = describeRange(block);
  if (range !== undefined) return range;
  const host = find(block);
  return host && `holds ${formatAddress({ family: host.prefix.family, value: host.prefix.address })}, ${host.role}`;
};

/** Where packets go that go by a relay. */
const relayAddresses = (world: World, links: readonly PeerLink[]): ProtectedAddress[] => {
  const address = links.some(({ external }) => external) ? relayAddress(world) : undefined;
  return address === undefined ? [] : [{ address, role: 'the address of the relay' }];
};

const PRIVATE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7'].map((text) =>
  tryParsePrefix(text)!,
);
export const isPublic = (address: string): boolean => {
  const host = hostPrefix(parseAddress(address));
  return !PRIVATE.some((block) => containsPrefix(block, host));
};

/** Own addresses of a peer from which it may reach us, so that what answers it must not be sent through it. */
const sourceAddresses = ({ peer, external, remoteIp }: PeerLink): string[] =>
  external && remoteIp === undefined ? peer.internalIps.filter(isPublic) : [];

/** All that must be reached without the overlay. */
const protectedBy = (world: World, local: LocalNode, links: readonly PeerLink[]): ProtectedAddress[] => {
  const { internalIps, externalIps } = local.member;
  return [
    ...(local.protectedAddresses ?? []),
    ...[...internalIps, ...externalIps].map((address) => ({ address, role: 'an address of this node' })),
    ...links.flatMap(({ remoteIp, peer }) =>
      remoteIp === undefined ? [] : [{ address: remoteIp, role: `the address of ${peer.name} in the underlay` }],
    ),
    ...relayAddresses(world, links),
  ];
};

export interface Guarded {
  /** Without the blocks that must not be routed; the same as before if there are none. */
  readonly world: World;
  readonly links: readonly PeerLink[];
  /** Of the blocks of pods that are left out, all but what the node needs of the underlay: no packet leaves for them. */
  readonly withheld: readonly Prefix[];
  /** Of all blocks of locators, also of those that are left out, all but what the node needs of the underlay. */
  readonly locators: readonly Prefix[];
  readonly problems: readonly Problem[];
}

/**
 * Blocks of pods that the guard left out for an address in them. Of the pods of its own network that another CNI plugin manages
 * only that plugin knows where they are; and a special range is nobody's block.
 */
const leftOut = (world: World, guarded: World['sites'], network: ReadonlySet<string>): Prefix[] =>
  [...world.sites.values()]
    .filter(({ name, manageCni }) => manageCni || !network.has(name))
    .flatMap(({ name, podCidrs }) => {
      const kept = new Set(guarded.get(name)!.podCidrs);
      return podCidrs.filter((block) => !kept.has(block) && describeRange(block) === undefined);
    });

const countBlocks = ({ sites, pools }: Pick<World, 'sites' | 'pools'>): number =>
  [...sites.values()].reduce(
    (sum, { podCidrs, nodeCidrs, locatorBlock }) => sum + podCidrs.length + nodeCidrs.length + (locatorBlock ? 1 : 0),
    0,
  ) + [...pools.values()].reduce((sum, { routedCidrs }) => sum + routedCidrs.length, 0);

const locatorBlocks = ({ sites }: World): Prefix[] =>
  [...sites.values()].flatMap(({ locatorBlock }) => locatorBlock ?? []);

/** The same object where nothing was left out. */
const withLess = (peer: Member, left: Pick<Member, 'podCidrs' | 'nodeAddresses' | 'locator'>): Member => {
  const isSame =
    left.podCidrs.length === peer.podCidrs.length &&
    left.nodeAddresses.length === peer.nodeAddresses.length &&
    left.locator === peer.locator;
  return isSame ? peer : { ...peer, ...left };
};

/** Leaves out of a node's world, and of what its peers have, every block that must not be routed into the overlay. */
export const guardUnderlay = (world: World, local: LocalNode, links: readonly PeerLink[]): Guarded => {
  const problems = new Map<string, Problem>();
  const near = nearBlocks(world, local);
  const network = networkSites(world, local.member.site);
  const everything = protectedBy(world, local, links);
  const isFar = (address: string): boolean =>
    !near.some((block) => containsPrefix(block, hostPrefix(parseAddress(address))));
  const anywhere = hostsIn(everything);
  const far = hostsIn(everything.filter(({ address }) => isFar(address))); // near ones are cut out of what holds them
  const sources = hostsIn(links.flatMap(sourceAddresses).map((address) => ({ address, role: '' })));
  const routable =
    (where: string, find: typeof anywhere) =>
    (block: Prefix): boolean => {
      const why = describeConflict(block, find);
      const text = formatPrefix(block);
      if (why !== undefined)
        problems.set(`${where} ${text}`, {
          reason: 'RouteOverlapsUnderlay',
          message: `${where}: ${text} ${why}, and is not routed into the overlay: list smaller blocks without such addresses`,
        });
      return why === undefined;
    };
  const guardLocator = (where: string, prefix: Prefix | undefined): Prefix | undefined =>
    prefix && routable(where, anywhere)(prefix) ? prefix : undefined;
  const guardSite = (site: SiteModel): SiteModel => ({
    ...site,
    locatorBlock: guardLocator(`Site ${site.name} status.l2LocatorBlock`, site.locatorBlock),
    podCidrs: site.podCidrs.filter(routable(`Site ${site.name} cidrBlocks`, anywhere)),
    nodeCidrs: network.has(site.name)
      ? site.nodeCidrs
      : site.nodeCidrs.filter((block) => !sources(block) && routable(`Site ${site.name} nodeCidrs`, far)(block)),
  });
  const guardPool = (pool: PoolModel): PoolModel =>
    pool.name === local.member.pool // what it routes itself leaves by the node's own routes
      ? pool
      : { ...pool, routedCidrs: pool.routedCidrs.filter(routable(`GatewayPool ${pool.name} routedCidrs`, far)) };
  const own = hostsIn([
    ...(local.protectedAddresses ?? []),
    ...local.member.internalIps.map((address) => ({ address, role: '' })),
  ]);
  /** A near address is only for what comes out of the overlay; of what the node itself needs, it must be where the link leads. */
  const isUsableNear = (address: string, { remoteIp }: PeerLink): boolean =>
    !isFar(address) && (address === remoteIp || !own(hostPrefix(parseAddress(address))));
  const guardPeer = (link: PeerLink): Member => {
    const { peer } = link;
    const podCidrs = peer.podCidrs.filter(routable(`node ${peer.name} podCIDRs`, anywhere));
    const nodeAddresses = peer.nodeAddresses.filter((address) => {
      const host = hostPrefix(parseAddress(address));
      return isUsableNear(address, link) || (!sources(host) && !anywhere(host));
    });
    const locator = guardLocator(`node ${peer.name} l2Locator`, peer.locator);
    return withLess(peer, { podCidrs, nodeAddresses, locator });
  };
  const sites = new Map([...world.sites].map(([name, site]) => [name, guardSite(site)]));
  const pools = new Map([...world.pools].map(([name, pool]) => [name, guardPool(pool)]));
  const needed = {
    hosts: [...everything.map(({ address }) => address), ...links.flatMap(sourceAddresses)],
    near,
  };
  return {
    // What was worked out for a world is remembered with it: one that stays the same is the same object.
    world: countBlocks({ sites, pools }) === countBlocks(world) ? world : { ...world, sites, pools },
    links: links.map((link) => {
      const peer = guardPeer(link);
      return peer === link.peer ? link : { ...link, peer };
    }),
    withheld: withheldOf(leftOut(world, sites, network), needed),
    locators: withheldOf(locatorBlocks(world), needed),
    problems: [...problems.values()],
  };
};
