import { comparePrefixes, firstAddress, formatPrefix, hostPrefix, type Prefix, withoutCovered } from '@unbounded/ip';
import { planEndpoints, planForwarding } from './routing/forwarding.plan.ts';
import { holdingsIn } from './routing/kept-holdings.ts';
import { type PeerLink, planLinks } from './links/links.plan.ts';
import type { LocalNode } from './links/local-node.ts';
import { outsideSite } from './world/members.ts';
import { tunnelDevice } from './links/next-hops.ts';
import { planNodeAddresses } from './routing/node-addresses.plan.ts';
import { type Path, planPaths } from './routing/paths.plan.ts';
import {
  type MasqueradePlan,
  type NodePlan,
  ROUTE_TABLES,
  type TunnelPlan,
  type WireGuardInterfacePlan,
} from './plan.ts';
import { planProbes } from './links/probes.plan.ts';
import { overheadBytes } from './links/protocol.ts';
import { servedSites } from './routing/distances.ts';
import type { NodeRelay, RelayModel } from './world/relay-model.ts';
import { planRoutes } from './routing/routes.plan.ts';
import { planSources } from './routing/sources.plan.ts';
import { planTunnelEnds } from './links/tunnel-ends.plan.ts';
import { planTunnelSources } from './links/tunnel-sources.plan.ts';
import { ownIp } from './links/underlay.ts';
import { guardUnderlay } from './routing/underlay-guard.ts';
import { planWireGuard } from './links/wireguard.plan.ts';
import type { Member, World } from './world/world.ts';
import type { Problem } from './world/problem.ts';

/** The narrowest MTU that any of the node's links leaves, but as if one were WireGuard: pods keep their MTU when a link changes. */
const podMtu = (local: LocalNode, links: readonly PeerLink[]): number =>
  Math.min(local.underlayMtuBytes - overheadBytes('WireGuard', 6), ...links.map(({ mtuBytes }) => mtuBytes));

interface Reached {
  readonly paths: readonly Path[];
  readonly withheld: readonly Prefix[];
}

/** Blocks that the guard withholds are pods' as well: their packets are not masqueraded, and nobody else has their addresses. */
const planMasquerade = (world: World, local: LocalNode, { paths, withheld }: Reached): MasqueradePlan => {
  const pods = [...[...world.sites.values()].flatMap(({ podCidrs }) => podCidrs), ...withheld];
  const site = world.sites.get(local.member.site);
  const reached = paths.filter(({ onlyTransit }) => !onlyTransit).map(({ prefix }) => prefix);
  return {
    sources: withoutCovered([...pods, ...local.member.podCidrs]).map(formatPrefix),
    exceptTo: withoutCovered([...pods, ...reached, ...(site?.nonMasqueradeCidrs ?? [])]).map(formatPrefix),
  };
};

const KINDS = ['VXLAN', 'GENEVE', 'IPIP'] as const;

/** Tunnel devices: one of each kind that a link needs, or under the netlink data path one a peer (but one for all VXLAN). */
const planTunnels = (local: LocalNode, links: readonly PeerLink[]): TunnelPlan[] =>
  KINDS.flatMap((kind) => {
    const devices = new Map<string, TunnelPlan>();
    for (const { protocol, remoteIp, mtuBytes } of links) {
      if (protocol !== kind || remoteIp === undefined) continue;
      const device = tunnelDevice(local, kind, remoteIp);
      const narrowest = Math.min(mtuBytes, devices.get(device)?.mtuBytes ?? mtuBytes);
      const isPeers = local.dataplane === 'netlink' && kind !== 'VXLAN';
      devices.set(device, { kind, device, mtuBytes: narrowest, ...(isPeers ? { remoteIp } : {}) });
    }
    return [...devices.values()].sort((a, b) => (a.device < b.device ? -1 : 1));
  });

const overlayPrefixes = ({ podCidrs }: Member): string[] => {
  const hosts = podCidrs.map((block): Prefix => hostPrefix(firstAddress(block)));
  return [...new Map(hosts.map((host) => [formatPrefix(host), host])).values()].sort(comparePrefixes).map(formatPrefix);
};

/** The member that a node is, by its name; undefined until a slice or a pool lists it. */
export const findMember = (world: World, node: string): Member | undefined =>
  [...world.pools.values()].flatMap(({ gateways }) => gateways).find(({ name }) => name === node) ??
  world.workers.find(({ name }) => name === node);

/** What the node itself has that its peers do not use. */
const ownProblems = ({ sites, confinement }: World, { name, site, podCidrs, internalIps }: Member): Problem[] => {
  const outside = podCidrs.filter((block) => !confinement.hasBlock({ name, site }, block));
  const isUnlisted = sites.has(site) && internalIps.length > 0;
  const unreachable = isUnlisted && !internalIps.some((address) => confinement.hasAddress({ name, site }, address));
  return [
    ...outside.map((block) => outsideSite(name, site, block)),
    ...(unreachable
      ? [
          {
            reason: 'InternalIPOutsideSite',
            message: `no InternalIP of node ${name} (${internalIps.join(', ')}) is usable in its Site ${site}: it must be inside the nodeCidrs and outside of the cidrBlocks of all Sites`,
          },
        ]
      : []),
  ];
};

/** The part of the plan that says where the relay is: there when a peer may need it. */
const relayOf = (
  relay: RelayModel | undefined,
  interfaces: readonly WireGuardInterfacePlan[],
): { readonly relay?: NodeRelay } =>
  relay && interfaces.some(({ peers }) => peers.some((peer) => peer.relay !== undefined)) ? { relay: relay.node } : {};

/** Each message once. */
const once = (problems: readonly Problem[]): Problem[] => [
  ...new Map(problems.map((problem) => [problem.message, problem])).values(),
];

/** The plan of one node. The order of the objects, of nodes in them and of names changes nothing. */
export const planNode = (objects: World, local: LocalNode): NodePlan => {
  const { member, dataplane = 'ebpf' } = local;
  const linked = planLinks(objects, local);
  const { world, links, withheld, problems: guardProblems } = guardUnderlay(objects, local, linked.links);
  const { paths, problems } = planPaths(world, local, links);
  const sources = planSources(world, local, links, paths);
  const wireGuard = planWireGuard(local, links, { allowedOver: (link) => sources.over(link), relay: world.relay });
  const mtuBytes = podMtu(local, links);
  const forwarding = planForwarding(local, paths);
  return {
    node: member.name,
    site: member.site,
    role: member.pool === undefined ? 'worker' : 'gateway',
    dataplane,
    routeTable: ROUTE_TABLES[dataplane],
    podCidrs: member.podCidrs.map(formatPrefix),
    overlayAddresses: overlayPrefixes(member),
    underlayIp: ownIp(member) ?? '',
    mtuBytes,
    manageCni: world.sites.get(member.site)?.manageCni ?? false,
    tunnels: planTunnels(local, links),
    wireGuard: wireGuard.interfaces,
    ...relayOf(world.relay, wireGuard.interfaces),
    endpoints: dataplane === 'ebpf' ? planEndpoints(forwarding) : [],
    groups: forwarding.groups,
    routes: planRoutes(world, local, forwarding, mtuBytes),
    ...planNodeAddresses(world, local, forwarding, mtuBytes),
    masquerade: planMasquerade(world, local, { paths, withheld }),
    ...(withheld.length === 0 ? {} : { withheld: withoutCovered(withheld).map(formatPrefix) }),
    probes: planProbes(local, links),
    servedSites: member.pool === undefined ? [] : servedSites(world, member.pool),
    forwarders: sources.forwarders,
    tunnelEnds: planTunnelEnds(objects),
    ...planTunnelSources(member, links),
    ...(dataplane === 'netlink' ? { senders: sources.senders() } : {}),
    holdings: holdingsIn(objects, member, new Set(links.map(({ peer }) => peer.name))),
    problems: once([
      ...world.problems,
      ...linked.problems,
      ...ownProblems(world, member),
      ...guardProblems,
      ...problems,
      ...wireGuard.problems,
    ]),
  };
};
