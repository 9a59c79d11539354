import { containsPrefix, parsePrefix } from '@unbounded/ip';
import type { BlockPlan, Destination, GroupPlan, NextHop, NodePlan, TunnelPeer } from '@unbounded/topology';
import type { KernelHop, KernelPlan, RoutePlan, TunnelKind } from './kernel-plan.ts';

/**
 * The plan behind a rendered one: agents before version 1 of the sections kept what they had rendered. Rendered again by the same data path
 * it is the same.
 */

type Via = Exclude<RoutePlan['via'], string>;

const hopOf = ({ device, protocol, node, remoteIp, gatewayIp, peerIp }: KernelHop): NextHop => {
  if (protocol === 'WireGuard') return { protocol, node, device };
  const overlay = gatewayIp === undefined ? {} : { overlayIp: gatewayIp };
  const peer = peerIp === undefined ? {} : { peerIp };
  return { protocol, node, remoteIp: remoteIp!, ...peer, ...overlay };
};

const groupOf = ({ members, ...group }: KernelPlan['groups'][number]): GroupPlan => ({
  ...group,
  members: members.map((member) => ({ ...hopOf(member), tier: member.tier })),
});

/** Stands in for a next hop that an entry has no room for. */
const isGroupOfOne = ({ name }: KernelPlan['groups'][number]): boolean => name.startsWith('node ');

/** Who is at the other end of a route's device: the netlink data path's routes name the device alone. */
const hopByDevice = (plan: KernelPlan, prefix: string, via: Extract<Via, { device: string }>): NextHop | undefined => {
  const { device, remoteIp, gatewayIp, peerIp } = via;
  const wireGuard = plan.wireGuard.find(({ name }) => name === device);
  if (wireGuard) {
    const target = parsePrefix(prefix);
    const isBehind = (text: string): boolean => containsPrefix(parsePrefix(text), target);
    const peer = wireGuard.peers.find(({ allowedIps }) => allowedIps.some(isBehind));
    return peer && { protocol: 'WireGuard', node: peer.node, device };
  }
  const tunnel = plan.tunnels.find((one) => one.device === device);
  const remote = remoteIp ?? tunnel?.remoteIp;
  const node = plan.senders?.find((sender) => sender.remoteIp === remote)?.node;
  if (!tunnel || remote === undefined || node === undefined) return undefined;
  return hopOf({
    ...{ device, protocol: tunnel.kind, node, remoteIp: remote },
    ...(gatewayIp === undefined ? {} : { gatewayIp }),
    ...(peerIp === undefined ? {} : { peerIp }),
  });
};

const destinationOf = (plan: KernelPlan, { prefix, via }: RoutePlan): Destination | undefined => {
  if (typeof via === 'string') return undefined;
  if ('gateways' in via || 'group' in via) return via;
  const nextHop = hopByDevice(plan, prefix, via);
  return nextHop && { nextHop };
};

const longestFirst = (routes: readonly RoutePlan[]) =>
  routes.map((route) => ({ route, block: parsePrefix(route.prefix) })).sort((a, b) => b.block.length - a.block.length);

const blocksOf = (plan: KernelPlan): BlockPlan[] => {
  const near = new Set(plan.nodeAddresses);
  const transit = new Map((plan.transitRoutes ?? []).map((route) => [route.prefix, route]));
  const routes = longestFirst(plan.routes);
  const placed = (prefix: string, to: Destination): BlockPlan => {
    const target = parsePrefix(prefix);
    const through = transit.get(prefix);
    if (near.has(prefix)) {
      const use = through ? 'transit' : 'accepted';
      return { prefix, to, mtuBytes: through?.mtuBytes ?? plan.mtuBytes, use };
    }
    const covering = routes.find(({ block }) => containsPrefix(block, target));
    return covering
      ? { prefix, to, mtuBytes: covering.route.mtuBytes }
      : { prefix, to, mtuBytes: plan.mtuBytes, use: 'unrouted' };
  };
  const single = new Map(plan.groups.filter(isGroupOfOne).map(({ name, members }) => [name, members[0]!]));
  const entries = plan.endpoints.map(({ prefix, via }) => {
    const hop = 'group' in via ? single.get(via.group) : via.nextHop;
    return placed(prefix, hop ? { nextHop: hopOf(hop) } : (via as { readonly group: string }));
  });
  const routed = [...plan.routes, ...transit.values()].flatMap((route): BlockPlan[] => {
    const to = destinationOf(plan, route);
    return to ? [placed(route.prefix, to)] : [];
  });
  const known = new Set([...entries, ...routed].map(({ prefix }) => prefix));
  const accepted = [...near].filter((prefix) => !known.has(prefix));
  return [...entries, ...routed, ...accepted.map((prefix) => placed(prefix, 'pending'))];
};

/** The eBPF data path keeps who may send in entries: there the blocks that a peer may bring are not known. */
const tunnelsOf = (plan: KernelPlan): TunnelPeer[] => {
  const external = new Set(plan.externalTunnelPeers);
  const forwarders = new Set(plan.forwarders);
  const mtuOf = (kind: TunnelKind, remoteIp: string): number =>
    plan.tunnels.find((one) => one.kind === kind && (one.remoteIp ?? remoteIp) === remoteIp)?.mtuBytes ?? plan.mtuBytes;
  const hops = [
    ...plan.groups.flatMap(({ members }) => members),
    ...plan.endpoints.flatMap(({ via }) => ('nextHop' in via ? [via.nextHop] : [])),
    ...(plan.senders ?? []).flatMap(({ node, remoteIp }): KernelHop[] => {
      const own = plan.tunnels.find((tunnel) => tunnel.remoteIp === remoteIp);
      const tunnel = own ?? plan.tunnels.find((shared) => shared.remoteIp === undefined);
      return tunnel ? [{ device: tunnel.device, protocol: tunnel.kind, remoteIp, node }] : [];
    }),
  ];
  const peers = new Map<string, TunnelPeer>();
  for (const { node, protocol, remoteIp } of hops) {
    if (protocol === 'WireGuard' || remoteIp === undefined) continue;
    peers.set(`${protocol} ${remoteIp}`, {
      ...{ node, protocol, remoteIp, mtuBytes: mtuOf(protocol, remoteIp) },
      sources: plan.senders?.find((sender) => sender.remoteIp === remoteIp)?.sources ?? [],
      isTransit: forwarders.has(remoteIp),
      isExternal: external.has(remoteIp),
    });
  }
  return [...peers.values()].sort((a, b) => (a.node < b.node ? -1 : 1));
};

/** What agents before this repository's validation of nodes did not write. */
const LATER = {
  ownAddresses: [],
  externalTunnelPeers: [],
  holdings: [],
  tunnelEnds: { addresses: [], wireGuardPorts: [] },
} as const;

export const planOfRendered = (kept: KernelPlan): NodePlan => {
  const plan = { ...LATER, ...kept };
  const {
    dataplane: _,
    routeTable: __,
    endpoints: ___,
    routes,
    transitRoutes: ____,
    nodeAddresses: _____,
    ...rest
  } = plan;
  const { forwarders: ______, senders: _______, externalTunnelPeers: ________, ...common } = rest;
  const blocks = blocksOf(plan);
  const known = new Set(blocks.map(({ prefix }) => prefix));
  const is = (via: RoutePlan['via'], ...kinds: readonly string[]): boolean =>
    typeof via === 'string' && kinds.includes(via);
  return {
    ...common,
    tunnels: tunnelsOf(plan),
    groups: plan.groups.filter((group) => !isGroupOfOne(group)).map(groupOf),
    blocks,
    contained: routes
      .filter(({ prefix, via }) => is(via, 'anchor', 'unreachable') && !known.has(prefix))
      .map(({ prefix }) => prefix),
    direct: routes.filter(({ via }) => is(via, 'main')).map(({ prefix }) => prefix),
  };
};
