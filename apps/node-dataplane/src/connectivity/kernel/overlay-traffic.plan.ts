import { PORTS } from '@unbounded/config/ownership';
import type { KernelPlan, TunnelKind } from '../../data-path/kernel-plan.ts';
import { nativePrefixes } from '../../data-path/routes.plan.ts';
import type { BoundaryAdditions } from '../../kernel/boundary-additions.ts';
import type { OverlayTraffic } from '../../kernel/overlay-traffic.ts';
import { IPIP } from '../../kernel/protocol-numbers.ts';
import type { Tunnel } from './taken-packets.plan.ts';

/** By what a firewall of the host knows the packets of the overlay. */

const endpointAddress = (endpoint: string): string => {
  const host = endpoint.slice(0, endpoint.lastIndexOf(':'));
  return host.startsWith('[') ? host.slice(1, -1) : host;
};

/** Own addresses of the nodes that are linked with this one, of both families. */
export const nodeAddresses = ({ node: own, holdings }: KernelPlan): string[] =>
  holdings.flatMap(({ node, addresses }) => (node === own ? [] : addresses));

/** Addresses from which tunnel packets come, encrypted or not; also that of a NAT, behind which others are as well. */
export const peerAddresses = (plan: KernelPlan): string[] => {
  const hops = [
    ...plan.endpoints.flatMap(({ via }) => ('nextHop' in via ? via.nextHop : [])),
    ...plan.groups.flatMap(({ members }) => members),
    ...plan.tunnels,
    ...(plan.senders ?? []),
  ];
  return [
    ...new Set([
      ...hops.flatMap(({ remoteIp }) => remoteIp ?? []),
      ...plan.forwarders,
      ...plan.externalTunnelPeers,
      ...nodeAddresses(plan),
      ...plan.wireGuard.flatMap(({ peers }) => peers.flatMap(({ endpoint }) => endpoint ?? [])).map(endpointAddress),
    ]),
  ];
};

/** Ports of interfaces with a peer that finds us: it may come from any address, and its key says who it is. */
export const portsOfAnybody = ({ wireGuard }: KernelPlan): number[] =>
  wireGuard
    .filter(({ peers }) => peers.some(({ endpoint }) => endpoint === undefined))
    .map(({ listenPort }) => listenPort);

const TUNNEL_PORTS: Readonly<Partial<Record<TunnelKind, number>>> = { VXLAN: PORTS.vxlan, GENEVE: PORTS.geneve };

/** Sources outside of the overlay whose packets may go into it at this node. */
export const entriesOf = (plan: KernelPlan, additions: readonly BoundaryAdditions[]): string[] => [
  ...plan.boundary.entries,
  ...nativePrefixes(plan),
  ...(plan.alsoPlain ?? []),
  ...additions.flatMap(({ entries }) => entries ?? []),
];

export interface TrafficSurroundings {
  /** Our tunnel devices that are there. */
  readonly tunnels: readonly Tunnel[];
  /** Names of the overlay's devices, also those that the plan no longer wants. */
  readonly devices: readonly string[];
  readonly additions: readonly BoundaryAdditions[];
}

const sorted = <T extends string | number>(values: readonly T[]): T[] =>
  [...new Set(values)].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));

export const overlayTraffic = (
  plan: KernelPlan,
  { tunnels, devices, additions }: TrafficSurroundings,
): OverlayTraffic => {
  const openPorts = portsOfAnybody(plan);
  const ports = plan.wireGuard.map(({ listenPort }) => listenPort);
  return {
    devices: sorted(devices),
    peers: sorted(peerAddresses(plan)),
    peerPorts: sorted([...ports, ...tunnels.flatMap(({ kind }) => TUNNEL_PORTS[kind] ?? [])]),
    peerProtocols: tunnels.some(({ kind }) => kind === 'IPIP') ? [IPIP] : [],
    openPorts: sorted(openPorts),
    entries: sorted(entriesOf(plan, additions)),
    hasIpv6: plan.locators?.own !== undefined || plan.podCidrs.some((block) => block.includes(':')),
  };
};
