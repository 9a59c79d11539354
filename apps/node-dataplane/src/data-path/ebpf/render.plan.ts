import { addressBits, parsePrefix } from '@unbounded/ip';
import type { BlockPlan, Destination, EchoPlan, GroupPlan, NextHop, NodePlan } from '@unbounded/topology';
import { DEVICES } from '../devices.ts';
import type { EndpointPlan, KernelGroup, KernelHop, Rendering, TunnelDevice } from '../kernel-plan.ts';
import { renderNodeAddresses, renderRoutes } from '../routes.plan.ts';

/** A plan for the eBPF programs: one device a protocol, entries that say where blocks go, and routes into the anchor device. */

const MAIN_TABLE = 254;

const hopOf = (hop: NextHop): KernelHop => {
  if (hop.protocol === 'WireGuard') return { device: hop.device, protocol: hop.protocol, node: hop.node };
  const { protocol, remoteIp, peerIp, node } = hop;
  const peer = peerIp === undefined || peerIp === remoteIp ? {} : { peerIp };
  return { device: DEVICES[protocol], protocol, remoteIp, ...peer, node };
};

const groupOf = ({ members, ...group }: GroupPlan): KernelGroup => ({
  ...group,
  members: members.map((member) => ({ ...hopOf(member), tier: member.tier })),
});

/**
 * An entry of an IPv4 block has room for an IPv4 underlay address only: over an IPv6 underlay a group of one stands in, whose
 * members have room for either.
 */
const groupOfOne = (
  prefix: string,
  hop: KernelHop,
  what: 'node' | 'echo' = 'node',
): { endpoint: EndpointPlan; group: KernelGroup } | undefined => {
  const { family } = parsePrefix(prefix);
  if (family !== 4 || !hop.remoteIp?.includes(':')) return undefined;
  const name = `${what} ${hop.node} IPv${family}`;
  return { endpoint: { prefix, via: { group: name } }, group: { name, family, members: [{ ...hop, tier: 0 }] } };
};

interface Entry {
  readonly endpoint: EndpointPlan;
  readonly group?: KernelGroup;
}

/** What says whose packets may come from there: natively routed blocks have no entry. */
const entryOf = ({ prefix, to, alsoFrom }: BlockPlan): Entry[] => {
  const isEntry = (end: Destination | undefined) => typeof end === 'object' && !('gateways' in end);
  const end = isEntry(to) ? to : alsoFrom;
  if (typeof end !== 'object' || 'gateways' in end) return [];
  if ('group' in end) return [{ endpoint: { prefix, via: end } }];
  const hop = hopOf(end.nextHop);
  return [groupOfOne(prefix, hop) ?? { endpoint: { prefix, via: { nextHop: hop } } }];
};

/** By the address that an echo is sent to the program knows through whom. */
const echoEntry = ({ address, family, via }: EchoPlan): Entry => {
  const prefix = `${address}/${addressBits(family)}`;
  const hop = { ...hopOf(via), isEcho: true } as const;
  return groupOfOne(prefix, hop, 'echo') ?? { endpoint: { prefix, via: { nextHop: hop } } };
};

const devicesOf = ({ tunnels }: NodePlan): TunnelDevice[] =>
  (['VXLAN', 'GENEVE', 'IPIP'] as const).flatMap((kind) => {
    const mtus = tunnels.filter(({ protocol }) => protocol === kind).map(({ mtuBytes }) => mtuBytes);
    return mtus.length === 0 ? [] : [{ kind, device: DEVICES[kind], mtuBytes: Math.min(...mtus) }];
  });

export const renderEbpf = (plan: NodePlan): Rendering => {
  const entries = [...plan.blocks.flatMap(entryOf), ...(plan.echoes ?? []).map(echoEntry)];
  const single = new Map(entries.flatMap(({ group }) => (group ? [[group.name, group] as const] : [])));
  const viaOf = ({ to }: BlockPlan) => (typeof to === 'object' && 'gateways' in to ? to : 'anchor');
  return {
    dataplane: 'ebpf',
    routeTable: MAIN_TABLE,
    tunnels: devicesOf(plan),
    endpoints: entries.map(({ endpoint }) => endpoint),
    groups: [...plan.groups.map(groupOf), ...single.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
    routes: renderRoutes(plan, { viaOf, nowhere: 'anchor', isBeforeMain: false }),
    ...renderNodeAddresses(plan, viaOf),
    forwarders: plan.tunnels.flatMap(({ isTransit, remoteIp }) => (isTransit ? [remoteIp] : [])).sort(),
    externalTunnelPeers: plan.tunnels.flatMap(({ isExternal, remoteIp }) => (isExternal ? [remoteIp] : [])).sort(),
  };
};
