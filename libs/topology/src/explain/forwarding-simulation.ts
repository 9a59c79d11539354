import { containsPrefix, formatPrefix, hostPrefix, parseAddress, parsePrefix, type Prefix } from '@unbounded/ip';
import { findMember, planNode } from '../node.plan.ts';
import { parseWorld } from '../world/parse-world.ts';
import type { NodePlan, RouteVia } from '../plan.ts';
import type { Member, TopologyObjects, World } from '../world/world.ts';

/** Packets walked through the plans of all nodes, by the rules of the data path, for tests. */

export interface Network {
  readonly world: World;
  readonly members: ReadonlyMap<string, Member>;
  readonly plans: ReadonlyMap<string, NodePlan>;
}

export const networkOf = (objects: TopologyObjects, dataplane: 'ebpf' | 'netlink' = 'ebpf'): Network => {
  const world = parseWorld(objects);
  const all = [...world.workers, ...[...world.pools.values()].flatMap(({ gateways }) => gateways)];
  const members = new Map(all.map((member) => [member.name, findMember(world, member.name)!]));
  const planOf = (member: Member): NodePlan => planNode(world, { member, underlayMtuBytes: 1500, dataplane });
  return { world, members, plans: new Map([...members].map(([name, member]) => [name, planOf(member)])) };
};

/** The longest prefix that holds the target. */
export const longestMatch = <T extends { readonly prefix: string }>(
  items: readonly T[],
  target: Prefix,
): T | undefined =>
  items
    .map((item) => ({ item, prefix: parsePrefix(item.prefix) }))
    .filter(({ prefix }) => containsPrefix(prefix, target))
    .sort((a, b) => b.prefix.length - a.prefix.length)[0]?.item;

const groupNodes = (plan: NodePlan, group: string): string[] =>
  plan.groups
    .find(({ name }) => name === group)!
    .members.filter(({ tier }) => tier === 0)
    .map(({ node }) => node);

const byUnderlay = ({ members }: Network, ip: string): string[] =>
  [...members.values()].filter((m) => [...m.internalIps, ...m.externalIps].includes(ip)).map(({ name }) => name);

const nodesVia = (network: Network, plan: NodePlan, via: RouteVia, target: Prefix): string[] => {
  if (via === 'unreachable' || via === 'main') return [];
  if (via === 'anchor') {
    const entry = longestMatch(plan.endpoints, target);
    if (!entry) return [];
    return 'nextHop' in entry.via ? [entry.via.nextHop.node] : groupNodes(plan, entry.via.group);
  }
  if ('group' in via) return groupNodes(plan, via.group);
  if ('gateways' in via) return via.gateways.flatMap((ip) => byUnderlay(network, ip));
  const peers = plan.wireGuard
    .filter(({ name }) => name === via.device)
    .flatMap((wg) => wg.peers)
    .filter(({ allowedIps }) => allowedIps.some((text) => containsPrefix(parsePrefix(text), target)));
  return via.remoteIp === undefined ? peers.map(({ node }) => node) : byUnderlay(network, via.remoteIp);
};

/**
 * Nodes to which a node may send a packet for the target: all members of the nearest tier. Empty: it drops it.
 * @param isTransit it came out of the overlay
 */
const nextNodes = (network: Network, node: string, target: Prefix, isTransit = false): string[] => {
  const plan = network.plans.get(node)!;
  const transit = isTransit ? longestMatch(plan.transitRoutes ?? [], target) : undefined;
  const route = transit ?? longestMatch(plan.routes, target);
  return route ? nodesVia(network, plan, route.via, target) : [];
};

/** Whether the receiver takes a packet with this inner source from the sender. */
export const accepts = (network: Network, receiver: string, sender: string, source: Prefix): boolean => {
  const plan = network.plans.get(receiver)!;
  const peer = plan.wireGuard.flatMap(({ peers }) => peers).find(({ node }) => node === sender);
  if (peer) return peer.allowedIps.some((text) => containsPrefix(parsePrefix(text), source));
  const allowed = plan.senders?.find(({ node }) => node === sender)?.sources;
  if (allowed) return allowed.some((text) => containsPrefix(parsePrefix(text), source));
  if (plan.senders) return nextNodes(network, receiver, source).includes(sender); // plain routing
  if (network.members.get(sender)!.internalIps.some((ip) => plan.forwarders.includes(ip))) return true;
  const entry = longestMatch(plan.endpoints, source);
  if (!entry) return nextNodes(network, receiver, source).includes(sender); // plain routing
  if ('nextHop' in entry.via) return entry.via.nextHop.node === sender;
  const { group } = entry.via;
  return plan.groups.find(({ name }) => name === group)!.members.some(({ node }) => node === sender);
};

/** Follows a packet along every choice from where it came `by`; the reason why it does not arrive on one, or undefined. */
export const failureOf = (network: Network, by: readonly string[], to: Prefix, source: Prefix): string | undefined => {
  const arrives = (node: string): boolean => {
    const { podCidrs, internalIps, site } = network.members.get(node)!;
    const addresses = internalIps.map((ip) => hostPrefix(parseAddress(ip)));
    if ([...podCidrs, ...addresses].some((block) => containsPrefix(block, to))) return true;
    // Inside a site with another CNI plug-in that one goes on from a node of the site.
    const own = network.world.sites.get(site);
    return own?.manageCni === false && own.podCidrs.some((block) => containsPrefix(block, to));
  };
  const follow = (node: string, way: readonly string[]): string | undefined => {
    const walked = [...way, node];
    if (way.includes(node)) return `loop: ${walked.join(' > ')}`;
    if (way.length > 0 && arrives(node)) return undefined;
    const next = nextNodes(network, node, to, way.length > 0);
    if (next.length === 0) return `${formatPrefix(to)} has no way on: ${walked.join(' > ')}`;
    for (const step of next) {
      if (!accepts(network, step, node, source)) return `refused by ${step}: ${walked.join(' > ')}`;
      const failure = follow(step, walked);
      if (failure !== undefined) return failure;
    }
    return undefined;
  };
  return follow(by.at(-1)!, by.slice(0, -1));
};
