import {
  type Brought,
  type Endpoint,
  GROUP_MEMBERS,
  innerMac,
  type NextHop as NextHopRecord,
  type Protocol,
} from '@unbounded/bpf-maps';
import type { Problem } from '@unbounded/topology';
import type { KernelGroup, KernelHop, KernelPlan } from '../kernel-plan.ts';
import { TUNNEL_VNI } from '../devices.ts';
import type { HealthGroup } from '../../connectivity/health/messages.ts';
import type { GroupIndexes } from '../group-indexes.ts';
import { sourceTowards } from '../../connectivity/kernel/own-addresses.ts';

/** The contents of the endpoint maps for a plan, and the groups they point at: names of devices become numbers. */

export interface ForwardingTables {
  readonly v4: ReadonlyMap<string, Endpoint>;
  readonly v6: ReadonlyMap<string, Endpoint>;
  /** Without weights: those are for the health of the members to say. */
  readonly groups: readonly HealthGroup[];
  /** Underlay addresses of peers that bring more than their own packets. */
  readonly forwarders: ReadonlyMap<string, Brought>;
  readonly problems: readonly Problem[];
}

const PROTOCOLS: Readonly<Record<KernelHop['protocol'], Protocol>> = {
  WireGuard: 'wireguard',
  VXLAN: 'vxlan',
  GENEVE: 'geneve',
  IPIP: 'ipip',
};

/** Inside the tunnel; only receivers with the eBPF data path take any. */
const macOf = ({ remoteIp, peerIp }: KernelHop): { readonly mac?: string } => {
  if (remoteIp === undefined || peerIp === undefined) return {};
  const mac = innerMac(peerIp);
  return mac === innerMac(remoteIp) ? {} : { mac };
};

/** The record of a next hop; undefined while its device is missing. */
const recordOf = (plan: KernelPlan, hop: KernelHop, ifindexes: ReadonlyMap<string, number>): Endpoint | undefined => {
  const ifindex = ifindexes.get(hop.device);
  if (ifindex === undefined) return undefined;
  const isTunnel = hop.protocol !== 'WireGuard';
  return {
    ...(isTunnel && hop.remoteIp !== undefined ? { remote: hop.remoteIp } : {}),
    vni: isTunnel ? TUNNEL_VNI : 0,
    ifindex,
    protocol: PROTOCOLS[hop.protocol],
    setKey: isTunnel,
    healthy: true,
    ...macOf(hop),
    ...(hop.isEcho ? { echo: true } : {}),
    ...(isTunnel && hop.remoteIp !== undefined && sourceTowards(plan, hop.remoteIp) ? { ownSource: true } : {}),
  };
};

const NO_HOP: Endpoint = { vni: 0, ifindex: 0, protocol: 'none', setKey: false, healthy: false };

/** A group whose members stand in the map as records. */
type MapGroup = HealthGroup & { readonly members: readonly { readonly record: NextHopRecord }[] };

/**
 * A group's own record shows its first member too, so that a dump of the map tells where packets go; without the far end
 * where an IPv4 record has no room for it.
 */
const shownHop = ({ family, members }: MapGroup): Endpoint => {
  const { remote, mac: _, ...shown } = members[0]?.record ?? NO_HOP;
  const fits = remote !== undefined && (family === 6 || !remote.includes(':'));
  return fits ? { ...shown, remote } : shown;
};

/** The group with those of its members whose devices are there; the nearest come first. */
const planGroup = (
  plan: KernelPlan,
  group: KernelGroup,
  ifindexes: ReadonlyMap<string, number>,
  index: number,
): MapGroup => {
  const { name, family, site } = group;
  const members = group.members.flatMap((hop) => {
    const record = recordOf(plan, hop, ifindexes);
    return record ? [{ node: hop.node, tier: hop.tier, record }] : [];
  });
  return { name, index, family, ...(site === undefined ? {} : { site }), members };
};

const tooMany = ({ name, members }: HealthGroup): Problem[] =>
  members.length <= GROUP_MEMBERS
    ? []
    : [
        {
          reason: 'TooManyGateways',
          message: `group ${name} has ${members.length} gateways: the first ${GROUP_MEMBERS} are used`,
        },
      ];

const bringers = ({ forwarders, echoes = [] }: KernelPlan): Map<string, Brought> => {
  const others = new Set(forwarders);
  const returning = new Set(echoes.flatMap(({ via }) => ('remoteIp' in via ? [via.remoteIp] : [])));
  return new Map(
    [...others.union(returning)].map((address) => [
      address,
      { ...(others.has(address) ? { others: true } : {}), ...(returning.has(address) ? { echoes: true } : {}) },
    ]),
  );
};

export const planForwardingTables = (
  plan: KernelPlan,
  ifindexes: ReadonlyMap<string, number>,
  indexes: GroupIndexes,
): ForwardingTables => {
  const groups = plan.groups.map((group) => planGroup(plan, group, ifindexes, indexes.indexOf(group.name)));
  const firstHops = new Map(groups.map((group) => [group.name, shownHop(group)]));
  const v4 = new Map<string, Endpoint>();
  const v6 = new Map<string, Endpoint>();
  for (const { prefix, via } of plan.endpoints) {
    const record =
      'nextHop' in via
        ? recordOf(plan, via.nextHop, ifindexes)
        : { ...firstHops.get(via.group)!, group: indexes.indexOf(via.group) };
    if (record) (prefix.includes(':') ? v6 : v4).set(prefix, record);
  }
  const forwarders = bringers(plan);
  return {
    v4,
    v6,
    groups: groups.map((group) => ({ ...group, members: group.members.slice(0, GROUP_MEMBERS) })),
    forwarders,
    problems: groups.flatMap(tooMany),
  };
};
