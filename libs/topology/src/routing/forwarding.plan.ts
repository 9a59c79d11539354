import { formatPrefix, type Prefix } from '@unbounded/ip';
import type { PeerLink } from '../links/links.plan.ts';
import type { LocalNode } from '../links/local-node.ts';
import { nativeNeighbor, nextHopOf } from '../links/next-hops.ts';
import type { BlockPlan, Destination, GroupMember, GroupPlan } from '../plan.ts';
import type { Path } from './paths.plan.ts';
import type { Way } from './ways.plan.ts';

export interface Forwarding {
  readonly blocks: readonly BlockPlan[];
  readonly groups: readonly GroupPlan[];
}

export interface ForwardingOptions {
  /** MTU of pods, bytes: no block has more. */
  readonly mtuBytes: number;
  /** Whether what came out of the overlay for nodes of a site on the node's own network goes on by a tunnel: its answers arrive. */
  readonly isAnswered: (site: string) => boolean;
  /** Whether the node's own packets have its InternalIP as their source. */
  readonly isFromNode: (path: Path) => boolean;
}

const membersOf = (local: LocalNode, { members, family }: Way): GroupMember[] =>
  members.flatMap(({ link, tier }) => {
    const hop = nextHopOf(local, link, family);
    return hop ? [{ ...hop, tier }] : [];
  });

const unique = (neighbors: readonly (string | undefined)[]): string[] =>
  [...new Set(neighbors.flatMap((neighbor) => neighbor ?? []))].sort();

/** Native neighbors, if the nearest gateways are reached by native routing alone: routes know no tiers. */
const nativeGateways = ({ members, family }: Way): string[] => {
  const lowest = Math.min(...members.map(({ tier }) => tier));
  const nearest = members.filter(({ tier }) => tier === lowest);
  if (!nearest.every(({ link }) => link.protocol === 'None')) return [];
  return unique(nearest.map(({ link }) => nativeNeighbor(link, family)));
};

const directly = (local: LocalNode, link: PeerLink, { family }: Prefix): Destination => {
  const nextHop = nextHopOf(local, link, family);
  if (nextHop) return { nextHop };
  const gateways = unique([nativeNeighbor(link, family)]);
  return gateways.length > 0 ? { gateways } : 'pending';
};

const throughGateways = (way: Way): Destination => {
  const gateways = nativeGateways(way);
  return gateways.length > 0 ? { gateways } : { group: way.name };
};

/** Whether a tunnel leads there; without one, or natively, the LAN does. */
const isTunnel = (to: Destination): boolean => typeof to === 'object' && !('gateways' in to);

/** Where every block goes, and the groups of next hops behind which sites and routed blocks lie. */
export const planForwarding = (
  local: LocalNode,
  paths: readonly Path[],
  { mtuBytes, isAnswered, isFromNode }: ForwardingOptions,
): Forwarding => {
  const groups = new Map<string, GroupPlan>();
  const narrowest = new Map<Way, number>();
  const addGroup = (way: Way): void => {
    const { name, family, site } = way;
    if (groups.has(name)) return;
    groups.set(name, { name, family, ...(site === undefined ? {} : { site }), members: membersOf(local, way) });
  };
  const linkMtu = ({ via }: Path): number => {
    if ('direct' in via) return via.direct.routeMtuBytes;
    const known = narrowest.get(via.way) ?? Math.min(...via.way.members.map(({ link }) => link.routeMtuBytes));
    narrowest.set(via.way, known);
    return known;
  };
  const useOf = ({ via, routed, onlyTransit }: Path, to: Destination): Pick<BlockPlan, 'use'> => {
    const site = 'direct' in via ? via.direct.peer.site : via.way.site;
    if (onlyTransit && site !== undefined) return { use: isTunnel(to) && isAnswered(site) ? 'transit' : 'accepted' };
    return routed ? {} : { use: 'unrouted' };
  };
  const blocks = paths.map((path): BlockPlan => {
    const { prefix, via } = path;
    const to = 'direct' in via ? directly(local, via.direct, prefix) : throughGateways(via.way);
    if ('way' in via && typeof to === 'object' && 'group' in to) addGroup(via.way);
    const source = isFromNode(path) ? { source: 'node' as const } : {};
    return {
      prefix: formatPrefix(prefix),
      to,
      mtuBytes: Math.min(mtuBytes, linkMtu(path)),
      ...useOf(path, to),
      ...source,
    };
  });
  return { blocks, groups: [...groups.values()].sort((a, b) => (a.name < b.name ? -1 : 1)) };
};
