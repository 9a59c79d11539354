import {
  comparePrefixes,
  containsPrefix,
  firstAddress,
  formatPrefix,
  hostPrefix,
  overlaps,
  parseAddress,
  type Prefix,
} from '@unbounded/ip';
import { servedSites } from './distances.ts';
import type { PeerLink } from '../links/links.plan.ts';
import type { LocalNode } from '../links/local-node.ts';
import { nearAddressesOf, nearBlocks } from './near.ts';
import { planWays, type Way } from './ways.plan.ts';
import type { World } from '../world/world.ts';
import type { Problem } from '../world/problem.ts';

/** Which link or links a block of addresses is reached by. */
export interface Path {
  readonly prefix: Prefix;
  /** direct: the peer's own blocks. way: any of its members leads there. */
  readonly via: { readonly direct: PeerLink } | { readonly way: Way };
  /**
   * false: packets from the block may come over the link, but another CNI plugin carries those to it (a node of the
   * same site where `manageCniPlugin` is false).
   */
  readonly routed: boolean;
  /**
   * Only for what came out of the overlay: an address that the node itself, which sends its tunnel packets there, goes on
   * reaching by the LAN.
   */
  readonly onlyTransit?: true;
  /** A locator, or a block of them: no pod nor node has an address there. */
  readonly isLocator?: true;
}

interface DirectPath extends Path {
  readonly via: { readonly direct: PeerLink };
}

/** The addresses of nodes of the sites that a gateway serves, if they share no network with it: it reaches them by their links alone. */
const farAddressesOf = (
  { role, external, peer }: PeerLink,
  { near, served }: { readonly near: readonly Prefix[]; readonly served: ReadonlySet<string> },
): Prefix[] =>
  external && (role === 'toWorker' || served.has(peer.site))
    ? peer.nodeAddresses
        .map((text) => hostPrefix(parseAddress(text)))
        .filter((host) => !near.some((block) => containsPrefix(block, host)))
    : [];

/** A peer's own blocks and, at a gateway, the addresses of the node itself. */
const directPathsOf = (
  link: PeerLink,
  foreignCni: boolean,
  around: Parameters<typeof farAddressesOf>[1],
): DirectPath[] => {
  const { podCidrs, locator } = link.peer;
  const via = { direct: link };
  // Where another plugin connects the pods only the peer's own overlay address is routed, which carries probes.
  const own = podCidrs.flatMap((prefix) => {
    const overlay = hostPrefix(firstAddress(prefix));
    const routed = !(foreignCni && link.sameSite) || overlay.length === prefix.length;
    return [{ prefix, via, routed }, ...(routed ? [] : [{ prefix: overlay, via, routed: true }])];
  });
  // What connects the pods knows nothing of locators.
  const locators = locator ? [{ prefix: locator, via, routed: true, isLocator: true as const }] : [];
  return [...own, ...locators, ...farAddressesOf(link, around).map((prefix) => ({ prefix, via, routed: true }))];
};

/** Without those of addresses that the node has itself. */
const withoutOwn = (paths: readonly DirectPath[], { member }: LocalNode, problems: Problem[]): DirectPath[] =>
  paths.filter(({ prefix, via }) => {
    const own = member.podCidrs.find((block) => overlaps(block, prefix));
    if (!own) return true;
    problems.push({
      reason: 'PodCIDROverlap',
      message: `${formatPrefix(prefix)} of node ${via.direct.peer.name} overlaps ${formatPrefix(own)} of node ${member.name}, which keeps it: every node needs addresses of its own; delete and re-create Node ${via.direct.peer.name}`,
    });
    return false;
  });

/** All paths of the node, in the order of their prefixes; a peer's own block wins over the same block behind gateways. */
export const planPaths = (
  world: World,
  local: LocalNode,
  links: readonly PeerLink[],
): { paths: Path[]; problems: Problem[] } => {
  const foreignCni = world.sites.get(local.member.site)?.manageCni === false;
  const problems: Problem[] = [];
  const ways = planWays(world, local, links);
  const near = nearBlocks(world, local);
  const served = new Set(local.member.pool === undefined ? [] : servedSites(world, local.member.pool));
  const all = links.flatMap((link) => [
    ...directPathsOf(link, foreignCni, { near, served }),
    ...nearAddressesOf(local, link, near).map((prefix) => ({
      prefix,
      via: { direct: link },
      routed: true,
      onlyTransit: true as const,
    })),
  ]);
  const direct = withoutOwn(all, local, problems);
  const taken = new Set([...direct.map(({ prefix }) => prefix), ...local.member.podCidrs].map(formatPrefix));
  const behind = ways
    .filter(({ prefix }) => !taken.has(formatPrefix(prefix)))
    .map(({ prefix, way, routed, onlyTransit, isLocator }): Path => ({
      prefix,
      via: { way },
      routed,
      ...(onlyTransit ? { onlyTransit } : {}),
      ...(isLocator ? { isLocator } : {}),
    }));
  return { paths: [...direct, ...behind].sort((a, b) => comparePrefixes(a.prefix, b.prefix)), problems };
};
