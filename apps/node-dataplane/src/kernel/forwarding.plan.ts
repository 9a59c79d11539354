import type { Endpoint, GroupMember, Protocol } from '@unbounded/bpf-maps';
import { type NextHop, type NodePlan, type Problem, TUNNEL_VNI } from '@unbounded/topology';
import type { GroupIndexes } from './group-indexes.ts';

/** The contents of the endpoint and group maps for a plan: names of devices become numbers. */

export interface ForwardingTables {
  readonly v4: ReadonlyMap<string, Endpoint>;
  readonly v6: ReadonlyMap<string, Endpoint>;
  readonly groups: ReadonlyMap<number, readonly GroupMember[]>;
  /** Underlay addresses of peers that bring packets of others. */
  readonly forwarders: ReadonlyMap<string, 1>;
  readonly problems: readonly Problem[];
}

const PROTOCOLS: Readonly<Record<NextHop['protocol'], Protocol>> = {
  WireGuard: 'wireguard',
  VXLAN: 'vxlan',
  GENEVE: 'geneve',
  IPIP: 'ipip',
};

const GROUP_SIZE = 16;

/** The record of a next hop; undefined while its device is missing. */
const recordOf = (hop: NextHop, ifindexes: ReadonlyMap<string, number>): Endpoint | undefined => {
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
  };
};

/** A group's own record shows its first member too, so that a dump of the map tells where packets go. */
const NO_HOP: Endpoint = { vni: 0, ifindex: 0, protocol: 'none', setKey: false, healthy: false };

export const planForwardingTables = (
  plan: NodePlan,
  ifindexes: ReadonlyMap<string, number>,
  indexes: GroupIndexes,
): ForwardingTables => {
  const problems: Problem[] = [];
  const groups = new Map<number, readonly GroupMember[]>();
  const firstHops = new Map<string, Endpoint>();
  for (const { name, members } of plan.groups) {
    const nearest = members.filter(({ tier }) => tier === members[0]?.tier);
    const records = nearest.flatMap((hop) => recordOf(hop, ifindexes) ?? []);
    if (records.length > GROUP_SIZE) {
      problems.push({
        reason: 'TooManyGateways',
        message: `group ${name} has ${records.length} gateways: the first ${GROUP_SIZE} are used`,
      });
    }
    groups.set(indexes.indexOf(name), records.slice(0, GROUP_SIZE).map((record) => ({ ...record, weight: 1 })));
    firstHops.set(name, records[0] ?? NO_HOP);
  }
  const v4 = new Map<string, Endpoint>();
  const v6 = new Map<string, Endpoint>();
  for (const { prefix, via } of plan.endpoints) {
    const record =
      'nextHop' in via ? recordOf(via.nextHop, ifindexes) : { ...firstHops.get(via.group)!, group: indexes.indexOf(via.group) };
    if (record) (prefix.includes(':') ? v6 : v4).set(prefix, record);
  }
  const forwarders = new Map(plan.forwarders.map((address) => [address, 1] as const));
  return { v4, v6, groups, forwarders, problems };
};
