import { familyOf } from '../links/underlay.ts';
import type { BlockPlan, Destination, GroupMember, GroupPlan, NextHop, NodePlan, TunnelPeer } from '../plan.ts';

/** What goes another way by one plan than by another, unencrypted by both, and for which the old way is good for a while. */

/** What one change makes go another way, unencrypted before and after. */
export interface ChangedWays {
  readonly prefixes: ReadonlySet<string>;
  /** Gateways whose protocol changes: `GROUP NODE`. Another change may be on its way for others of the group, at another step. */
  readonly members: ReadonlySet<string>;
}

type Carriage = 'encrypted' | 'tunnel' | 'native' | 'other';

/** How packets to a destination leave, and over whom. */
interface Way {
  readonly carriage: Carriage;
  readonly hops: readonly NextHop[];
}

const carriageOf = (hops: readonly NextHop[]): Carriage => {
  if (hops.length === 0) return 'other';
  return hops.some(({ protocol }) => protocol === 'WireGuard') ? 'encrypted' : 'tunnel';
};

export const wayOf = (to: Destination, groups: ReadonlyMap<string, GroupPlan>): Way => {
  if (to === 'pending') return { carriage: 'other', hops: [] };
  if ('gateways' in to) return { carriage: 'native', hops: [] };
  const hops = 'nextHop' in to ? [to.nextHop] : (groups.get(to.group)?.members ?? []);
  return { carriage: carriageOf(hops), hops };
};

export const byName = ({ groups }: Pick<NodePlan, 'groups'>): Map<string, GroupPlan> =>
  new Map(groups.map((group) => [group.name, group]));
export const byPrefix = ({ blocks }: NodePlan): Map<string, BlockPlan> =>
  new Map(blocks.map((block) => [block.prefix, block]));

const isOpen = (carriage: Carriage): boolean => carriage === 'tunnel' || carriage === 'native';

/** Nodes that it has WireGuard to. */
export const encryptedPeers = ({ wireGuard }: NodePlan): Set<string> =>
  new Set(wireGuard.flatMap(({ peers }) => peers.map(({ node }) => node)));

/** Tunnel endpoints of a plan by the peer's node. */
export type Endpoints = ReadonlyMap<string, readonly TunnelPeer[]>;

export const endpointsOf = ({ tunnels }: NodePlan): Endpoints => Map.groupBy(tunnels, ({ node }) => node);

/** Whether the peer can still be called at the address: it has no other one of that family now. */
const isStillThere = (hop: NextHop, endpoints: Endpoints): boolean => {
  if (hop.protocol === 'WireGuard') return true;
  const family = familyOf(hop.remoteIp);
  const now = (endpoints.get(hop.node) ?? []).filter(({ remoteIp }) => familyOf(remoteIp) === family);
  return now.length === 0 || now.some(({ remoteIp }) => remoteIp === hop.remoteIp);
};

/** Whether packets go to the node by another protocol than before, at an address that it still has. */
export const isOtherProtocol = (then: NextHop, now: NextHop, endpoints: Endpoints): boolean =>
  then.node === now.node && then.protocol !== now.protocol && isStillThere(then, endpoints);

/** Of a member of a group. */
export const memberKey = (group: string, node: string): string => `${group} ${node}`;

/**
 * Whether a block waits: both its ways are open, and the old one still leads to those who have it. That is so where the same nodes are reached
 * by another protocol, and where the block is reached over other nodes: by gateways instead of directly, or the other way round. To another
 * address of a node, to another node that has the block now, and without a gateway that is none any more packets go at once: nobody
 * is left at the old end.
 */
const waits = (then: Way, now: Way, ends: { readonly isSameKind: boolean; readonly endpoints: Endpoints }): boolean => {
  if (!isOpen(then.carriage) || !isOpen(now.carriage)) return false;
  if (then.carriage === 'native' || now.carriage === 'native') return then.carriage !== now.carriage;
  if (!ends.isSameKind) return true;
  return then.hops.some((hop) => now.hops.some((other) => isOtherProtocol(hop, other, ends.endpoints)));
};

const groupOf = (to: Destination): string | undefined =>
  typeof to === 'object' && 'group' in to ? to.group : undefined;

/** Nodes that packets may still go to as before: those that the plan has, and sends nothing encrypted to. */
export const openPeers = (plan: NodePlan): Set<string> => {
  const encrypted = encryptedPeers(plan);
  return new Set(plan.probes.flatMap(({ node }) => (encrypted.has(node) ? [] : [node])));
};

/** Of a group that nothing leads to any more: who goes on carrying in the first step. */
export const stillCarrying = (
  group: GroupPlan,
  { peers, endpoints }: { readonly peers: ReadonlySet<string>; readonly endpoints: Endpoints },
): GroupMember[] => group.members.filter((member) => peers.has(member.node) && isStillThere(member, endpoints));

/**
 * Prefixes whose packets go unencrypted before and after, but another way, and for which the old one is good for a while.
 * @param endpoints that peers have now
 */
export const changedPrefixes = (before: NodePlan, after: NodePlan, endpoints: Endpoints): Set<string> => {
  const [old, oldGroups, groups] = [byPrefix(before), byName(before), byName(after)];
  const peers = openPeers(after);
  /** Whether anybody is left behind it. */
  const isCarried = (group: GroupPlan): boolean =>
    (groups.get(group.name)?.members ?? stillCarrying(group, { peers, endpoints })).length > 0;
  const changed = after.blocks.filter(({ prefix, to }) => {
    const known = old.get(prefix);
    if (!known) return false;
    const left = groupOf(known.to);
    const group = left === undefined ? undefined : oldGroups.get(left);
    if (group && !isCarried(group)) return false;
    const isSameKind = (left === undefined) === (groupOf(to) === undefined);
    return waits(wayOf(known.to, oldGroups), wayOf(to, groups), { isSameKind, endpoints });
  });
  return new Set(changed.map(({ prefix }) => prefix));
};

const isUnencrypted = ({ protocol }: NextHop): boolean => protocol !== 'WireGuard';

const memberOf = (groups: ReadonlyMap<string, GroupPlan>, name: string, node: string): GroupMember | undefined =>
  groups.get(name)?.members.find((member) => member.node === node);

const changedMembers = (before: NodePlan, after: NodePlan, sent: NodePlan): Set<string> => {
  const [old, sending] = [byName(before), byName(sent)];
  const isChanged = (name: string, member: GroupMember): boolean => {
    const then = memberOf(old, name, member.node) ?? memberOf(sending, name, member.node);
    return then !== undefined && then.protocol !== member.protocol && isUnencrypted(then) && isUnencrypted(member);
  };
  return new Set(
    after.groups.flatMap(({ name, members }) =>
      members.filter((member) => isChanged(name, member)).map(({ node }) => memberKey(name, node)),
    ),
  );
};

/** @param sent how is sent at the moment, where an earlier change is not over */
export const changedWays = (before: NodePlan, after: NodePlan, sent = before): ChangedWays => ({
  prefixes: changedPrefixes(before, after, endpointsOf(after)),
  members: changedMembers(before, after, sent),
});

/** What of it goes unencrypted by the plan. */
export const openWays = <T extends ChangedWays>(ways: readonly T[], plan: NodePlan): T[] => {
  const groups = byName(plan);
  const prefixes = new Set(
    plan.blocks.flatMap(({ prefix, to }) => (isOpen(wayOf(to, groups).carriage) ? [prefix] : [])),
  );
  const members = new Set(
    plan.groups.flatMap((group) => group.members.filter(isUnencrypted).map(({ node }) => memberKey(group.name, node))),
  );
  return ways
    .map((one) => ({
      ...one,
      prefixes: one.prefixes.intersection(prefixes),
      members: one.members.intersection(members),
    }))
    .filter((one) => one.prefixes.size > 0);
};

/** Without a tunnel (protocol None). */
export const isNative = (to: Destination): to is Extract<Destination, { readonly gateways: readonly string[] }> =>
  typeof to === 'object' && 'gateways' in to;
