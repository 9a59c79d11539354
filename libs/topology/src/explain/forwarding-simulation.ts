import { containsPrefix, formatPrefix, hostPrefix, parseAddress, parsePrefix, type Prefix } from '@unbounded/ip';
import { findMember, planNode } from '../node.plan.ts';
import type { BlockPlan, Destination, NodePlan } from '../plan.ts';
import { parseWorld } from '../world/parse-world.ts';
import type { Member, TopologyObjects, World } from '../world/world.ts';

/** Packets walked through the plans of all nodes: who sends to whom, and who takes what from whom. */

export interface Network {
  readonly world: World;
  readonly members: ReadonlyMap<string, Member>;
  readonly plans: ReadonlyMap<string, NodePlan>;
}

export const networkOf = (objects: TopologyObjects): Network => {
  const world = parseWorld(objects);
  const all = [...world.workers, ...[...world.pools.values()].flatMap(({ gateways }) => gateways)];
  const members = new Map(all.map((member) => [member.name, findMember(world, member.name)!]));
  const planOf = (member: Member): NodePlan => planNode(world, { member, underlayMtuBytes: 1500 });
  return { world, members, plans: new Map([...members].map(([name, member]) => [name, planOf(member)])) };
};

/** The longest prefix that holds the target; of two that are the same the first. */
export const longestMatch = <T extends { readonly prefix: string }>(
  items: readonly T[],
  target: Prefix,
): T | undefined =>
  items
    .map((item) => ({ item, prefix: parsePrefix(item.prefix) }))
    .filter(({ prefix }) => containsPrefix(prefix, target))
    .sort((a, b) => b.prefix.length - a.prefix.length)[0]?.item;

const byUnderlay = ({ members }: Network, ip: string): string[] =>
  [...members.values()].filter((m) => [...m.internalIps, ...m.externalIps].includes(ip)).map(({ name }) => name);

/** The peers of a WireGuard interface that get what is for the target. */
const peersBehind = ({ wireGuard }: NodePlan, device: string, target: Prefix): string[] =>
  wireGuard
    .filter(({ name }) => name === device)
    .flatMap(({ peers }) => peers)
    .filter(({ allowedIps }) => allowedIps.some((text) => containsPrefix(parsePrefix(text), target)))
    .map(({ node }) => node);

const nodesAt = (network: Network, plan: NodePlan, to: Destination, target: Prefix): string[] => {
  if (to === 'pending') return [];
  if ('gateways' in to) return to.gateways.flatMap((ip) => byUnderlay(network, ip));
  if ('group' in to) {
    const { members } = plan.groups.find(({ name }) => name === to.group)!;
    const nearest = Math.min(...members.map(({ tier }) => tier));
    return members.filter(({ tier }) => tier === nearest).map(({ node }) => node);
  }
  const { nextHop } = to;
  return nextHop.protocol === 'WireGuard' ? peersBehind(plan, nextHop.device, target) : [nextHop.node];
};

const isRouted = ({ use }: BlockPlan): boolean => use === undefined;

/**
 * Nodes to which a node may send a packet for the target: all members of the nearest tier. Empty: it drops it, or reaches it directly.
 * @param isTransit it came out of the overlay
 */
const nextNodes = (network: Network, node: string, target: Prefix, isTransit = false): string[] => {
  const plan = network.plans.get(node)!;
  const carried = [...plan.podCidrs, ...(plan.locators?.own === undefined ? [] : [plan.locators.own])];
  if (!carried.some((block) => parsePrefix(block).family === target.family)) return [];
  const transit = isTransit ? plan.blocks.filter(({ use }) => use === 'transit') : [];
  const through = longestMatch(transit, target);
  if (through) return nodesAt(network, plan, through.to, target);
  const found = longestMatch<{ readonly prefix: string; readonly to?: Destination }>(
    [
      ...plan.direct.map((prefix) => ({ prefix })),
      ...plan.blocks.filter(isRouted),
      ...plan.contained.map((prefix) => ({ prefix })),
    ],
    target,
  );
  return found?.to === undefined ? [] : nodesAt(network, plan, found.to, target);
};

/** Whether the receiver takes a packet with this inner source from the sender. */
export const accepts = (network: Network, receiver: string, sender: string, source: Prefix): boolean => {
  const plan = network.plans.get(receiver)!;
  const holdsSource = (text: string): boolean => containsPrefix(parsePrefix(text), source);
  const peer = plan.wireGuard.flatMap(({ peers }) => peers).find(({ node }) => node === sender);
  if (peer) return peer.allowedIps.some(holdsSource);
  const tunnel = plan.tunnels.find(({ node }) => node === sender);
  if (tunnel) return tunnel.sources.some(holdsSource);
  return nextNodes(network, receiver, source).includes(sender); // native routing
};

/** Follows a packet along every choice from where it came `by`; the reason why it does not arrive on one, or undefined. */
export const failureOf = (network: Network, by: readonly string[], to: Prefix, source: Prefix): string | undefined => {
  const arrives = (node: string): boolean => {
    const { podCidrs, locator, internalIps, site } = network.members.get(node)!;
    const addresses = internalIps.map((ip) => hostPrefix(parseAddress(ip)));
    if ([...podCidrs, ...(locator ? [locator] : []), ...addresses].some((block) => containsPrefix(block, to)))
      return true;
    // Inside a site with another CNI plugin that one goes on from a node of the site.
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
