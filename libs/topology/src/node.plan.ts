import type { TunnelProtocol } from '@unbounded/crds';
import {
  comparePrefixes,
  firstAddress,
  formatAddress,
  formatPrefix,
  parsePrefix,
  type Prefix,
  withoutCovered,
} from '@unbounded/ip';
import { type LocalNode, type PeerLink, planLinks } from './links.ts';
import { type Path, planPaths } from './paths.plan.ts';
import { OVERHEAD_BYTES } from './protocol.ts';
import { planWireGuard, type WireGuardInterfacePlan, wireGuardInterfaceOf } from './wireguard.plan.ts';
import type { Member, Problem, World } from './world.ts';

/** Names of the devices that the plan speaks of. */
export const DEVICES = {
  anchor: 'unbounded0',
  bridge: 'cbr0',
  VXLAN: 'vxlan0',
  GENEVE: 'geneve0',
  IPIP: 'ipip0',
} as const;
export type TunnelKind = 'VXLAN' | 'GENEVE' | 'IPIP';

/** The virtual network identifier of all our tunnels. */
export const TUNNEL_VNI = 1;

/** Where a packet goes next: into a WireGuard interface, or into a tunnel device towards `remoteIp`. */
export interface NextHop {
  readonly device: string;
  readonly protocol: Exclude<TunnelProtocol, 'None'>;
  readonly remoteIp?: string;
  readonly node: string;
}

/** An entry of the endpoint maps. */
export interface EndpointPlan {
  readonly prefix: string;
  readonly via: { readonly nextHop: NextHop } | { readonly group: string };
}

export interface GroupPlan {
  /** Stays the same while members come and go. */
  readonly name: string;
  readonly members: readonly NextHop[];
}

/** A kernel route: into the anchor device, or plainly to a neighbour (protocol None). */
export interface RoutePlan {
  readonly prefix: string;
  readonly via: 'anchor' | { readonly gateways: readonly string[] };
  readonly prefSrc?: string;
  readonly mtuBytes: number;
}

export interface MasqueradePlan {
  /** Blocks whose packets leave with the node's own address. */
  readonly sources: readonly string[];
  /** Destinations that see the pod's own address. */
  readonly exceptTo: readonly string[];
}

/** Everything that one node's kernel should hold for the network. */
export interface NodePlan {
  readonly node: string;
  readonly site: string;
  readonly role: 'worker' | 'gateway';
  /** The node's blocks, and the host addresses (/32, /128) that its overlay devices carry: the first of each block. */
  readonly podCidrs: readonly string[];
  readonly overlayAddresses: readonly string[];
  readonly underlayIp: string;
  /** MTU of pods and of the anchor, bytes: what the narrowest protocol leaves. */
  readonly mtuBytes: number;
  readonly manageCni: boolean;
  readonly tunnels: readonly { readonly kind: TunnelKind; readonly device: string; readonly mtuBytes: number }[];
  readonly wireGuard: readonly WireGuardInterfacePlan[];
  readonly endpoints: readonly EndpointPlan[];
  readonly groups: readonly GroupPlan[];
  readonly routes: readonly RoutePlan[];
  readonly masquerade: MasqueradePlan;
  readonly problems: readonly Problem[];
}

const nextHopOf = (local: LocalNode, link: PeerLink): NextHop | undefined => {
  if (link.protocol === 'None') return undefined;
  if (link.protocol === 'WireGuard') {
    const device = wireGuardInterfaceOf(local, link);
    return device === undefined ? undefined : { device, protocol: 'WireGuard', node: link.peer.name };
  }
  return { device: DEVICES[link.protocol], protocol: link.protocol, remoteIp: link.remoteIp!, node: link.peer.name };
};

const sortedTexts = (prefixes: Iterable<Prefix>): string[] =>
  [...new Map([...prefixes].map((p) => [formatPrefix(p), p])).values()].sort(comparePrefixes).map(formatPrefix);

/** The narrowest MTU that any of the node's links leaves, but as if one were WireGuard: pods keep their MTU when a link changes. */
const podMtu = (local: LocalNode, links: readonly PeerLink[]): number =>
  Math.min(local.underlayMtuBytes - OVERHEAD_BYTES.WireGuard, ...links.map(({ mtuBytes }) => mtuBytes));

interface Forwarding {
  readonly endpoints: EndpointPlan[];
  readonly groups: Map<string, NextHop[]>;
  /** Blocks that plain routing reaches, and by which neighbours. */
  readonly plain: { prefix: Prefix; gateways: string[] }[];
  readonly anchored: Prefix[];
}

const planForwarding = (local: LocalNode, paths: readonly Path[]): Forwarding => {
  const plan: Forwarding = { endpoints: [], groups: new Map(), plain: [], anchored: [] };
  for (const { prefix, via } of paths) {
    const links = 'direct' in via ? [via.direct] : via.links;
    const hops = links.flatMap((link) => nextHopOf(local, link) ?? []);
    const neighbours = links.flatMap(({ protocol, remoteIp }) =>
      protocol === 'None' && remoteIp !== undefined ? [remoteIp] : [],
    );
    if (hops.length === 0 && neighbours.length > 0) {
      plan.plain.push({ prefix, gateways: [...new Set(neighbours)].sort() });
      continue;
    }
    plan.anchored.push(prefix); // also when no hop is ready yet: better dropped at the anchor than sent in the clear
    if ('direct' in via) {
      if (hops[0]) plan.endpoints.push({ prefix: formatPrefix(prefix), via: { nextHop: hops[0] } });
    } else {
      plan.groups.set(via.group, hops);
      plan.endpoints.push({ prefix: formatPrefix(prefix), via: { group: via.group } });
    }
  }
  return plan;
};

const planRoutes = (
  local: LocalNode,
  sitePods: readonly Prefix[],
  forwarding: Forwarding,
  mtuBytes: number,
): RoutePlan[] => {
  const source = (prefix: Prefix): { prefSrc?: string } => {
    const own = local.member.podCidrs.find(({ family }) => family === prefix.family);
    return own ? { prefSrc: formatAddress(firstAddress(own)) } : {};
  };
  // The site's whole pool goes to the anchor: an address that no node has must not leave by the default route.
  const families = new Set(local.member.podCidrs.map(({ family }) => family));
  const own = new Set(local.member.podCidrs.map(formatPrefix)); // a node that has a whole pool has it on its bridge
  const anchored = withoutCovered(
    [...sitePods, ...forwarding.anchored].filter((p) => families.has(p.family) && !own.has(formatPrefix(p))),
  );
  return [
    ...anchored.map((prefix) => ({
      prefix: formatPrefix(prefix),
      via: 'anchor' as const,
      ...source(prefix),
      mtuBytes,
    })),
    ...forwarding.plain.map(({ prefix, gateways }) => ({
      prefix: formatPrefix(prefix),
      via: { gateways },
      ...source(prefix),
      mtuBytes,
    })),
  ];
};

const planMasquerade = (world: World, local: LocalNode, paths: readonly Path[]): MasqueradePlan => {
  const pods = [...world.sites.values()].flatMap(({ podCidrs }) => podCidrs);
  const site = world.sites.get(local.member.site);
  const reached = paths.map(({ prefix }) => prefix);
  return {
    sources: withoutCovered([...pods, ...local.member.podCidrs]).map(formatPrefix),
    exceptTo: withoutCovered([...pods, ...reached, ...(site?.nonMasqueradeCidrs ?? [])]).map(formatPrefix),
  };
};

const TUNNEL_KINDS: readonly TunnelKind[] = ['VXLAN', 'GENEVE', 'IPIP'];

const planTunnels = (links: readonly PeerLink[]): NodePlan['tunnels'] =>
  TUNNEL_KINDS.flatMap((kind) => {
    const carried = links.filter(({ protocol }) => protocol === kind);
    return carried.length === 0
      ? []
      : [{ kind, device: DEVICES[kind], mtuBytes: Math.min(...carried.map(({ mtuBytes }) => mtuBytes)) }];
  });

/** The member that a node is, by its name; undefined until a slice or a pool lists it. */
export const findMember = (world: World, node: string): Member | undefined =>
  [...world.pools.values()].flatMap(({ gateways }) => gateways).find(({ name }) => name === node) ??
  world.workers.find(({ name }) => name === node);

/** The plan of one node. The order of the objects, of nodes in them and of names changes nothing. */
export const planNode = (world: World, local: LocalNode): NodePlan => {
  const { member } = local;
  const { links, problems } = planLinks(world, local);
  const paths = planPaths(world, local, links);
  const wireGuard = planWireGuard(local, links, paths);
  const mtuBytes = podMtu(local, links);
  const forwarding = planForwarding(local, paths);
  const site = world.sites.get(member.site);
  return {
    node: member.name,
    site: member.site,
    role: member.pool === undefined ? 'worker' : 'gateway',
    podCidrs: member.podCidrs.map(formatPrefix),
    overlayAddresses: sortedTexts(
      member.podCidrs.map((block) =>
        parsePrefix(`${formatAddress(firstAddress(block))}/${block.family === 4 ? 32 : 128}`),
      ),
    ),
    underlayIp: member.internalIps[0] ?? '',
    mtuBytes,
    manageCni: site?.manageCni ?? false,
    tunnels: planTunnels(links),
    wireGuard: wireGuard.interfaces,
    endpoints: forwarding.endpoints,
    groups: [...forwarding.groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, members]) => ({ name, members })),
    routes: planRoutes(local, site?.podCidrs ?? [], forwarding, mtuBytes),
    masquerade: planMasquerade(world, local, paths),
    problems: [...world.problems, ...problems, ...wireGuard.problems],
  };
};
