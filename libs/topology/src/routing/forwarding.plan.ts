import { formatPrefix, type Prefix } from '@unbounded/ip';
import type { PeerLink } from '../links/links.plan.ts';
import type { LocalNode } from '../links/local-node.ts';
import { nextHopOf, plainNeighbour } from '../links/next-hops.ts';
import type { Path } from './paths.plan.ts';
import type { EndpointPlan, GroupMember, GroupPlan, NextHop } from '../plan.ts';
import type { Way } from './ways.plan.ts';

/** Where a block's packets go. pending: nowhere yet; better dropped than sent in the clear. */
export type Destination =
  { readonly nextHop: NextHop } | { readonly group: string } | { readonly gateways: readonly string[] } | 'pending';

interface Forwarded {
  readonly prefix: Prefix;
  readonly to: Destination;
  /** What the narrowest of the links to it carries, bytes. */
  readonly mtuBytes: number;
  readonly routed: boolean;
  /** Only for what came out of the overlay: the site of the nodes whose addresses they are. */
  readonly transitTo?: string;
}

export interface Forwarding {
  readonly blocks: readonly Forwarded[];
  readonly groups: readonly GroupPlan[];
}

const membersOf = (local: LocalNode, { members, family }: Way): GroupMember[] =>
  members.flatMap(({ link, tier }) => {
    const hop = nextHopOf(local, link, family);
    return hop ? [{ ...hop, tier }] : [];
  });

const unique = (neighbours: readonly (string | undefined)[]): string[] =>
  [...new Set(neighbours.flatMap((neighbour) => neighbour ?? []))].sort();

/** Plain neighbours, if the nearest gateways are reached by plain routing alone: routes know no tiers. */
const plainWay = ({ members, family }: Way): string[] => {
  const nearest = members.filter(({ tier }) => tier === 0);
  if (!nearest.every(({ link }) => link.protocol === 'None')) return [];
  return unique(nearest.map(({ link }) => plainNeighbour(link, family)));
};

const directly = (local: LocalNode, link: PeerLink, { family }: Prefix): Destination => {
  const nextHop = nextHopOf(local, link, family);
  if (nextHop) return { nextHop };
  const gateways = unique([plainNeighbour(link, family)]);
  return gateways.length > 0 ? { gateways } : 'pending';
};

/**
 * A record of an IPv4 block has room for an IPv4 underlay address only: over an IPv6 underlay a group of one stands in,
 * whose members have room for either.
 */
const needsGroup = (
  { dataplane = 'ebpf' }: LocalNode,
  { family }: Prefix,
  to: Destination,
): to is { nextHop: NextHop } =>
  dataplane === 'ebpf' &&
  family === 4 &&
  typeof to === 'object' &&
  'nextHop' in to &&
  (to.nextHop.remoteIp?.includes(':') ?? false);

const groupOfOne = ({ nextHop }: { readonly nextHop: NextHop }, { family }: Prefix): GroupPlan => ({
  name: `node ${nextHop.node} IPv${family}`,
  family,
  members: [{ ...nextHop, tier: 0 }],
});

/** Where every block goes, and the groups of next hops behind which sites and routed blocks lie. */
export const planForwarding = (local: LocalNode, paths: readonly Path[]): Forwarding => {
  const groups = new Map<string, GroupPlan>();
  const mtus = new Map<Way, number>();
  const blocks = paths.map(({ prefix, via, routed, onlyTransit }): Forwarded => {
    if ('direct' in via) {
      const to = directly(local, via.direct, prefix);
      const { routeMtuBytes: mtuBytes, peer } = via.direct;
      const common = { prefix, mtuBytes, routed, ...(onlyTransit ? { transitTo: peer.site } : {}) };
      if (!needsGroup(local, prefix, to)) return { ...common, to };
      const group = groupOfOne(to, prefix);
      groups.set(group.name, group);
      return { ...common, to: { group: group.name } };
    }
    const { way } = via;
    const mtuBytes = mtus.get(way) ?? Math.min(...way.members.map(({ link }) => link.routeMtuBytes));
    mtus.set(way, mtuBytes);
    const { name, family, site } = way;
    const transitTo = onlyTransit ? site : undefined;
    const common = { prefix, mtuBytes, routed, ...(transitTo === undefined ? {} : { transitTo }) };
    const gateways = plainWay(way);
    if (gateways.length > 0) return { ...common, to: { gateways } };
    if (!groups.has(name))
      groups.set(name, { name, family, ...(site === undefined ? {} : { site }), members: membersOf(local, way) });
    return { ...common, to: { group: name } };
  });
  return { blocks, groups: [...groups.values()].sort((a, b) => (a.name < b.name ? -1 : 1)) };
};

/** The entries of the endpoint maps; also of blocks that are not routed here, because they say whose sources may come. */
export const planEndpoints = ({ blocks }: Forwarding): EndpointPlan[] =>
  blocks.flatMap(({ prefix, to }): EndpointPlan[] =>
    typeof to === 'object' && !('gateways' in to) ? [{ prefix: formatPrefix(prefix), via: to }] : [],
  );
