import { comparePrefixes, firstAddress, formatPrefix, hostPrefix, type Prefix, withoutCovered } from '@unbounded/ip';
import { planBoundary } from './routing/boundary.plan.ts';
import { planContainment } from './routing/containment.plan.ts';
import { planForwarding } from './routing/forwarding.plan.ts';
import { planEchoes } from './links/echoes.plan.ts';
import { holdingsIn } from './routing/holdings-in.ts';
import { type PeerLink, planLinks } from './links/links.plan.ts';
import type { LocalNode } from './links/local-node.ts';
import { outsideSite } from './world/members.ts';
import { answeredSites } from './routing/node-addresses.plan.ts';
import { type Path, planPaths } from './routing/paths.plan.ts';
import type { LocatorPlan, MasqueradePlan, NodePlan, WireGuardInterfacePlan } from './plan.ts';
import { fromNode } from './routing/node-source.plan.ts';
import { planProbes } from './links/probes.plan.ts';
import { overheadBytes } from './links/protocol.ts';
import { servedBy } from './routing/distances.ts';
import type { NodeRelay, RelayModel } from './world/relay-model.ts';
import { routesNodes } from './routing/routes-nodes.ts';
import { planSources } from './routing/sources.plan.ts';
import { planTunnelEnds } from './links/tunnel-ends.plan.ts';
import { ownAddresses } from './links/own-addresses.ts';
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
  const reached = paths.filter(({ onlyTransit, isLocator }) => !onlyTransit && !isLocator).map(({ prefix }) => prefix);
  return {
    sources: withoutCovered([...pods, ...local.member.podCidrs]).map(formatPrefix),
    exceptTo: withoutCovered([...pods, ...reached, ...(site?.nonMasqueradeCidrs ?? [])]).map(formatPrefix),
  };
};

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

const locatorsOf = ({ locator }: Member, blocks: readonly Prefix[]): { readonly locators?: LocatorPlan } =>
  blocks.length === 0 && !locator
    ? {}
    : {
        locators: {
          ...(locator ? { own: formatPrefix(locator) } : {}),
          blocks: withoutCovered(blocks).map(formatPrefix),
        },
      };

/** Each message once. */
const once = (problems: readonly Problem[]): Problem[] => [
  ...new Map(problems.map((problem) => [problem.message, problem])).values(),
];

/** The plan of one node. The order of the objects, of nodes in them and of names changes nothing. */
export const planNode = (objects: World, local: LocalNode): NodePlan => {
  const { member } = local;
  const linked = planLinks(objects, local);
  const { world, links, withheld, locators, problems: guardProblems } = guardUnderlay(objects, local, linked.links);
  const { paths, problems } = planPaths(world, local, links);
  const echoes = planEchoes(world, local, links);
  const sources = planSources(world, local, { links, paths, echoes });
  const wireGuard = planWireGuard(local, links, { allowedOver: (link) => sources.over(link), relay: world.relay });
  const mtuBytes = podMtu(local, links);
  return {
    node: member.name,
    site: member.site,
    role: member.pool === undefined ? 'worker' : 'gateway',
    podCidrs: member.podCidrs.map(formatPrefix),
    overlayAddresses: overlayPrefixes(member),
    underlayIp: ownIp(member) ?? '',
    ownAddresses: ownAddresses(member),
    mtuBytes,
    manageCni: world.sites.get(member.site)?.manageCni ?? false,
    wireGuard: wireGuard.interfaces,
    ...relayOf(world.relay, wireGuard.interfaces),
    tunnels: sources.tunnels(),
    ...planForwarding(local, paths, {
      mtuBytes,
      isAnswered: answeredSites(world, local),
      isFromNode: fromNode(objects, local, links),
    }),
    ...planContainment(world, local),
    masquerade: planMasquerade(world, local, { paths, withheld }),
    boundary: planBoundary(world, local, links),
    ...(withheld.length === 0 ? {} : { withheld: withoutCovered(withheld).map(formatPrefix) }),
    ...locatorsOf(member, locators),
    probes: planProbes(local, links),
    ...(echoes.plans.length === 0 ? {} : { echoes: echoes.plans }),
    servedSites: servedBy(world, member).itself,
    holdings: holdingsIn(objects, member, new Set(links.map(({ peer }) => peer.name))),
    ...(routesNodes(objects, world, local) ? { routesNodes: true as const } : {}),
    tunnelEnds: planTunnelEnds(objects, member.site),
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
