import { containsPrefix, formatPrefix, parsePrefix } from '@unbounded/ip';
import type { ProtectedAddress } from '../links/local-node.ts';
import type { BlockPlan, NodePlan } from '../plan.ts';
import { hostOf } from './endpoint-hosts.ts';
import { describeConflict, hostsIn } from './underlay-guard.ts';
import { withheldOf } from './withheld.ts';

/** Where a plan's own packets go, without what it routes. */
const endpointsOf = ({ underlayIp, wireGuard, tunnels, groups, blocks }: NodePlan): ProtectedAddress[] => {
  const hops = [
    ...groups.flatMap(({ members }) => members),
    ...blocks.flatMap(({ to }) => (typeof to === 'object' && 'nextHop' in to ? [to.nextHop] : [])),
  ];
  const peers = wireGuard.flatMap(({ peers: all }) => all.flatMap(({ endpoint }) => endpoint ?? []));
  const remotes = [
    ...hops.flatMap((hop) => ('remoteIp' in hop ? [hop.remoteIp] : [])),
    ...tunnels.map(({ remoteIp }) => remoteIp),
    ...peers.map(hostOf),
  ];
  return [
    ...(underlayIp === '' ? [] : [{ address: underlayIp, role: 'an address of this node' }]),
    ...[...new Set(remotes)].map((address) => ({ address, role: 'the address of a peer in the underlay' })),
  ];
};

const withoutHosts = (prefixes: readonly string[], needed: readonly ProtectedAddress[]): string[] =>
  withheldOf(prefixes.map(parsePrefix), { hosts: needed.map(({ address }) => address), near: [] }).map(formatPrefix);

/**
 * A kept plan without what must not be routed into the overlay: it may be of an agent that did not check, or from before
 * the API server had its address. With it the agent could never hear that the objects were corrected.
 */
export const withoutProtected = (plan: NodePlan, addresses: readonly ProtectedAddress[]): NodePlan => {
  const needed = [...addresses, ...endpointsOf(plan)];
  const find = hostsIn(needed);
  const reasons = new Map<string, string>();
  const isRoutable = (prefix: string): boolean => {
    const why = describeConflict(parsePrefix(prefix), find);
    if (why !== undefined) reasons.set(prefix, why);
    return why === undefined;
  };
  // Addresses on the node's own network are not routed, but for what comes out of the overlay.
  const isNear = ({ use }: BlockPlan): boolean => use === 'transit' || use === 'accepted';
  const blocks = plan.blocks.filter((block) => isNear(block) || isRoutable(block.prefix));
  const contained = plan.contained.filter(isRoutable);
  const podCidrs = plan.podCidrs.filter(isRoutable);
  const gone = plan.podCidrs.filter((block) => !podCidrs.includes(block)).map((block) => parsePrefix(block));
  // In whatever order either list is.
  const isOfGone = (address: string): boolean => gone.some((block) => containsPrefix(block, parsePrefix(address)));
  const withheld = withoutHosts(plan.withheld ?? [], needed);
  const wasWithheld = new Set(plan.withheld);
  const isSame = withheld.length === wasWithheld.size && withheld.every((prefix) => wasWithheld.has(prefix));
  if (reasons.size === 0 && isSame) return plan;
  const sources = plan.masquerade.sources.filter((prefix) => !wasWithheld.has(prefix) && isRoutable(prefix));
  return {
    ...plan,
    blocks,
    contained,
    podCidrs,
    overlayAddresses: plan.overlayAddresses.filter((address) => !isOfGone(address)),
    ...(plan.withheld ? { withheld } : {}),
    ...(plan.locators ? { locators: { ...plan.locators, blocks: withoutHosts(plan.locators.blocks, needed) } } : {}),
    masquerade: { ...plan.masquerade, sources: [...sources, ...withheld] },
    problems: [
      ...plan.problems,
      ...[...reasons].map(([prefix, why]) => ({
        reason: 'RouteOverlapsUnderlay',
        message: `the kept plan routes ${prefix}, which ${why}: it is left out; list smaller blocks without such addresses in the Sites and GatewayPools`,
      })),
    ],
  };
};
