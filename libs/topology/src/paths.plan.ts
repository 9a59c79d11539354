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
import type { LocalNode, PeerLink } from './links.ts';
import { nearBlocks, planWays, type Way } from './ways.plan.ts';
import type { Problem, World } from './world.ts';

/** Which link or links a block of addresses is reached by. */
export interface Path {
  readonly prefix: Prefix;
  /** direct: the peer's own blocks. way: any of its members leads there. */
  readonly via: { readonly direct: PeerLink } | { readonly way: Way };
  /**
   * false: packets from the block may come over the link, but another CNI plug-in carries those to it (a node of the
   * same site where `manageCniPlugin` is false).
   */
  readonly routed: boolean;
}

interface DirectPath extends Path {
  readonly via: { readonly direct: PeerLink };
}

/** A peer's own blocks; a gateway also reaches the nodes themselves of a site that shares no network with it. */
const directPathsOf = (link: PeerLink, foreignCni: boolean, near: readonly Prefix[]): DirectPath[] => {
  const { podCidrs, internalIps } = link.peer;
  const nodeAddresses =
    link.role === 'toWorker' && link.external
      ? internalIps.map((text) => hostPrefix(parseAddress(text))).filter((p) => !near.some((n) => containsPrefix(n, p)))
      : [];
  const via = { direct: link };
  // Where another plug-in connects the pods only the peer's own overlay address is routed, which carries probes.
  const own = podCidrs.flatMap((prefix) => {
    const overlay = hostPrefix(firstAddress(prefix));
    const routed = !(foreignCni && link.sameSite) || overlay.length === prefix.length;
    return [{ prefix, via, routed }, ...(routed ? [] : [{ prefix: overlay, via, routed: true }])];
  });
  return [...own, ...nodeAddresses.map((prefix) => ({ prefix, via, routed: true }))];
};

/** The paths in order, without those whose addresses another node has already. */
const withoutTaken = (paths: readonly DirectPath[], local: LocalNode, problems: Problem[]): DirectPath[] => {
  const sorted = paths.toSorted(
    (a, b) => comparePrefixes(a.prefix, b.prefix) || (a.via.direct.peer.name < b.via.direct.peer.name ? -1 : 1),
  );
  const owners = local.member.podCidrs.map((prefix) => ({ prefix, name: local.member.name }));
  let widest: { prefix: Prefix; name: string } | undefined;
  return sorted.filter(({ prefix, via }) => {
    const { name } = via.direct.peer;
    const covering = widest && containsPrefix(widest.prefix, prefix) ? widest : undefined;
    const owner = owners.find((own) => overlaps(own.prefix, prefix)) ?? covering;
    if (!covering) widest = owner ? widest : { prefix, name };
    if (!owner || owner.name === name) return true;
    problems.push({
      reason: 'AddressesTaken',
      message: `${formatPrefix(prefix)} of node ${name} overlaps ${formatPrefix(owner.prefix)} of node ${owner.name}, which keeps it: every node needs addresses of its own`,
    });
    return false;
  });
};

/** All paths of the node, in the order of their prefixes; a peer's own block wins over the same block behind gateways. */
export const planPaths = (
  world: World,
  local: LocalNode,
  links: readonly PeerLink[],
): { paths: Path[]; problems: Problem[] } => {
  const foreignCni = world.sites.get(local.member.site)?.manageCni === false;
  const { ways, problems } = planWays(world, local, links);
  const near = nearBlocks(world, local);
  const all = links.flatMap((link) => directPathsOf(link, foreignCni, near));
  const direct = withoutTaken(all, local, problems);
  const taken = new Set([...direct.map(({ prefix }) => prefix), ...local.member.podCidrs].map(formatPrefix));
  const behind = ways
    .filter(({ prefix }) => !taken.has(formatPrefix(prefix)))
    .map(({ prefix, way, routed }): Path => ({ prefix, via: { way }, routed }));
  return { paths: [...direct, ...behind].sort((a, b) => comparePrefixes(a.prefix, b.prefix)), problems };
};
