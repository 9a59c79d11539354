import { innerMac } from '@unbounded/bpf-maps';
import { formatAddress, linkLocalOf } from '@unbounded/ip';
import type { BlockPlan, NextHop, NodePlan, TunnelPeer } from '@unbounded/topology';
import { DEVICES, peerDevice } from '../devices.ts';
import type { KernelHop, Rendering, RouteVia, TunnelDevice } from '../kernel-plan.ts';
import { renderNodeAddresses, renderRoutes } from '../routes.plan.ts';

/** A plan for the kernel's own routes: a device a peer (one for all VXLAN), routes to devices and next-hop groups. */

/** Looked up before the main one. */
const OWN_TABLE = 252;

const deviceOf = ({ protocol, remoteIp }: Pick<TunnelPeer, 'protocol' | 'remoteIp'>): string =>
  protocol === 'VXLAN' ? DEVICES.VXLAN : peerDevice(protocol, remoteIp);

/**
 * What names the peer on the link. Of IPv6 a link-local address: any other is looked up in the main table by the kernel, whatever
 * table the route is in (ip6_route_check_nh_onlink), and refused where a route there leads elsewhere, as those of the eBPF data path do.
 */
const gatewayOf = (overlayIp: string | undefined, peerIp: string): string | undefined =>
  overlayIp?.includes(':') ? formatAddress(linkLocalOf(innerMac(peerIp))) : overlayIp;

const hopOf = (hop: NextHop): KernelHop => {
  if (hop.protocol === 'WireGuard') return { device: hop.device, protocol: hop.protocol, node: hop.node };
  const { protocol, remoteIp, peerIp, overlayIp, node } = hop;
  const gatewayIp = gatewayOf(overlayIp, peerIp ?? remoteIp);
  const gateway = gatewayIp === undefined ? {} : { gatewayIp };
  const peer = peerIp === undefined || (gatewayIp === undefined && peerIp === remoteIp) ? {} : { peerIp };
  return { device: deviceOf(hop), protocol, remoteIp, ...gateway, ...peer, node };
};

const devicesOf = ({ tunnels }: NodePlan): TunnelDevice[] =>
  (['VXLAN', 'GENEVE', 'IPIP'] as const).flatMap((kind) => {
    const devices = new Map<string, TunnelDevice>();
    for (const peer of tunnels.filter(({ protocol }) => protocol === kind)) {
      const device = deviceOf(peer);
      const mtuBytes = Math.min(peer.mtuBytes, devices.get(device)?.mtuBytes ?? peer.mtuBytes);
      devices.set(device, { kind, device, mtuBytes, ...(kind === 'VXLAN' ? {} : { remoteIp: peer.remoteIp }) });
    }
    return [...devices.values()].sort((a, b) => (a.device < b.device ? -1 : 1));
  });

export const renderNetlink = (plan: NodePlan): Rendering => {
  const empty = new Set(plan.groups.filter(({ members }) => members.length === 0).map(({ name }) => name));
  const viaOf = ({ to }: BlockPlan): RouteVia => {
    if (to === 'pending') return 'unreachable';
    if ('gateways' in to) return to;
    if ('group' in to) return empty.has(to.group) ? 'unreachable' : to;
    const { protocol: _, node: __, ...via } = hopOf(to.nextHop);
    return via;
  };
  return {
    dataplane: 'netlink',
    routeTable: OWN_TABLE,
    tunnels: devicesOf(plan),
    endpoints: [],
    groups: plan.groups.map(({ members, ...group }) => ({
      ...group,
      members: members.map((member) => ({ ...hopOf(member), tier: member.tier })),
    })),
    routes: renderRoutes(plan, { viaOf, nowhere: 'unreachable', isBeforeMain: true }),
    ...renderNodeAddresses(plan, viaOf),
    forwarders: [],
    senders: plan.tunnels.map(({ node, remoteIp, sources }) => ({ node, remoteIp, sources })),
    externalTunnelPeers: plan.tunnels.flatMap(({ isExternal, remoteIp }) => (isExternal ? [remoteIp] : [])).sort(),
  };
};
