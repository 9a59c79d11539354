import { AddressSet, formatPrefix, parsePrefix } from '@unbounded/ip';
import { familyOf } from '../links/underlay.ts';
import type {
  BlockPlan,
  Destination,
  EchoPlan,
  GroupMember,
  GroupPlan,
  NextHop,
  NodePlan,
  TunnelPeer,
} from '../plan.ts';

/**
 * From one plan to the next without a packet lost: links between which nothing is encrypted go from one protocol to
 * another in three steps, because the two ends learn of the change at different times. Pure; the caller keeps the clock.
 *
 * - `receive`: takes packets both ways and still sends the old one, until the other ends had time to do the same;
 * - `send`: sends the new way and still takes both;
 * - the new plan alone.
 *
 * A link that is, or becomes, WireGuard is never part of this: security does not wait.
 */
export type TransitionStep = 'receive' | 'send';

/** A change that is on its way. */
export interface Transition {
  /** How packets were sent until it began. */
  readonly before: NodePlan;
  /** Those that it changes: another one may be on its way for others, at another step. */
  readonly prefixes: ReadonlySet<string>;
  readonly step: TransitionStep;
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

const wayOf = (to: Destination, groups: ReadonlyMap<string, GroupPlan>): Way => {
  if (to === 'pending') return { carriage: 'other', hops: [] };
  if ('gateways' in to) return { carriage: 'native', hops: [] };
  const hops = 'nextHop' in to ? [to.nextHop] : (groups.get(to.group)?.members ?? []);
  return { carriage: carriageOf(hops), hops };
};

const byName = ({ groups }: Pick<NodePlan, 'groups'>): Map<string, GroupPlan> =>
  new Map(groups.map((group) => [group.name, group]));
const byPrefix = ({ blocks }: NodePlan): Map<string, BlockPlan> =>
  new Map(blocks.map((block) => [block.prefix, block]));

const isOpen = (carriage: Carriage): boolean => carriage === 'tunnel' || carriage === 'native';

/** Tunnel endpoints of a plan by the peer's node. */
type Endpoints = ReadonlyMap<string, readonly TunnelPeer[]>;

const endpointsOf = ({ tunnels }: NodePlan): Endpoints => Map.groupBy(tunnels, ({ node }) => node);

/** Whether the peer can still be called at the address: it has no other one of that family now. */
const isStillThere = (hop: NextHop, endpoints: Endpoints): boolean => {
  if (hop.protocol === 'WireGuard') return true;
  const family = familyOf(hop.remoteIp);
  const now = (endpoints.get(hop.node) ?? []).filter(({ remoteIp }) => familyOf(remoteIp) === family);
  return now.length === 0 || now.some(({ remoteIp }) => remoteIp === hop.remoteIp);
};

/** Whether packets go to the node by another protocol than before, at an address that it still has. */
const isOtherProtocol = (then: NextHop, now: NextHop, endpoints: Endpoints): boolean =>
  then.node === now.node && then.protocol !== now.protocol && isStillThere(then, endpoints);

/** Gateways that are no more carry nothing, and those that are new carry from now on. */
const formerMembers = (former: GroupPlan, now: GroupPlan, endpoints: Endpoints): GroupMember[] =>
  now.members.map((member): GroupMember => {
    const then = former.members.find(({ node }) => node === member.node);
    return then && isOtherProtocol(then, member, endpoints) ? { ...then, tier: member.tier } : member;
  });

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

/** The former groups, with the members that go on carrying in the first step. */
const formerGroups = (before: NodePlan, after: NodePlan, endpoints: Endpoints): GroupPlan[] => {
  const now = byName(after);
  const peers = new Set(after.probes.map(({ node }) => node));
  return before.groups.map((group) => {
    const same = now.get(group.name);
    const members = same
      ? formerMembers(group, same, endpoints)
      : group.members.filter((member) => peers.has(member.node) && isStillThere(member, endpoints));
    return { ...group, members };
  });
};

/**
 * Prefixes whose packets go unencrypted before and after, but another way, and for which the old one is good for a while.
 * @param endpoints that peers have now: those of a step between two plans are former ones, too
 */
export const changedPrefixes = (before: NodePlan, after: NodePlan, endpoints = endpointsOf(after)): Set<string> => {
  const [old, oldGroups, groups] = [byPrefix(before), byName(before), byName(after)];
  const former = byName({ groups: formerGroups(before, after, endpoints) });
  const changed = after.blocks.filter(({ prefix, to }) => {
    const known = old.get(prefix);
    if (!known) return false;
    const left = groupOf(known.to);
    if (left !== undefined && former.get(left)?.members.length === 0) return false;
    const isSameKind = (left === undefined) === (groupOf(to) === undefined);
    return waits(wayOf(known.to, oldGroups), wayOf(to, groups), { isSameKind, endpoints });
  });
  return new Set(changed.map(({ prefix }) => prefix));
};

/** Without a tunnel (protocol None). */
export const isNative = (to: Destination): boolean => typeof to === 'object' && 'gateways' in to;

/** Blocks that leave, and so come, without a tunnel (protocol None). */
const nativePrefixes = ({ blocks }: NodePlan): string[] =>
  blocks.filter(({ to, use }) => isNative(to) && use !== 'unrouted').map(({ prefix }) => prefix);

/**
 * Addresses that change their way and are reached natively before or after. What is inside of such a block and reached another way, or
 * lives on this node, is none of them: the longest prefix decides.
 */
const plainPrefixes = (before: NodePlan, after: NodePlan, changed: ReadonlySet<string>): string[] => {
  const native = new Set([...nativePrefixes(before), ...nativePrefixes(after)].filter((prefix) => changed.has(prefix)));
  const routed = after.blocks.filter(({ use }) => use === undefined || use === 'transit').map(({ prefix }) => prefix);
  const others = [...routed, ...after.podCidrs].filter((prefix) => !native.has(prefix));
  return AddressSet.byLongestPrefix([...native].map(parsePrefix), others.map(parsePrefix))
    .toPrefixes()
    .map(formatPrefix);
};

/** The neighbors to whom changed blocks are sent natively. */
const nativeNeighbors = ({ blocks }: NodePlan, changed: ReadonlySet<string>): string[] =>
  blocks.flatMap(({ prefix, to }) =>
    changed.has(prefix) && typeof to === 'object' && 'gateways' in to ? to.gateways : [],
  );

/** Those of both plans, but nobody who encrypts from now on. */
const tunnelsOf = (before: NodePlan, after: NodePlan): TunnelPeer[] => {
  const encrypting = new Set(after.wireGuard.flatMap(({ peers }) => peers.map(({ node }) => node)));
  const keyOf = ({ protocol, remoteIp }: TunnelPeer): string => `${protocol} ${remoteIp}`;
  const now = new Map(after.tunnels.map((peer) => [keyOf(peer), peer]));
  const old = before.tunnels.filter(({ node }) => !encrypting.has(node));
  const both = old.map((peer): TunnelPeer => {
    const same = now.get(keyOf(peer));
    if (!same) return peer;
    return {
      ...same,
      sources: [...new Set([...peer.sources, ...same.sources])].sort(),
      isTransit: peer.isTransit || same.isTransit,
    };
  });
  const known = new Set(old.map(keyOf));
  return [...both, ...after.tunnels.filter((peer) => !known.has(keyOf(peer)))];
};

/** The groups that blocks name, each taken from the first plan that has it. */
const groupsFor = (blocks: readonly BlockPlan[], ...plans: readonly NodePlan[]): GroupPlan[] => {
  const known = new Map(plans.toReversed().flatMap((plan) => [...byName(plan)]));
  const ends = blocks.flatMap(({ to, alsoFrom }) => [to, alsoFrom]);
  const names = new Set(ends.flatMap((end) => (typeof end === 'object' && 'group' in end ? [end.group] : [])));
  return [...names].sort().flatMap((name) => known.get(name) ?? []);
};

/** To the nodes whose blocks change their way. */
const changedNodes = ({ blocks }: NodePlan, changed: ReadonlySet<string>): string[] =>
  blocks.flatMap(({ prefix, to }) =>
    changed.has(prefix) && typeof to === 'object' && 'nextHop' in to ? [to.nextHop.node] : [],
  );

/** Through the gateways of the new plan, by the way that is sent by in this step; none to who is reached natively in it. */
const echoesOf = (
  sending: NodePlan,
  after: NodePlan,
  changed: ReadonlySet<string>,
): { readonly echoes?: readonly EchoPlan[] } => {
  const nodes = new Set([...changedNodes(sending, changed), ...changedNodes(after, changed)]);
  const echoes = (after.echoes ?? []).flatMap((echo) =>
    nodes.has(echo.node)
      ? (sending.echoes ?? []).filter(({ node, family }) => node === echo.node && family === echo.family)
      : [echo],
  );
  return echoes.length === 0 ? {} : { echoes };
};

const together = (...lists: (readonly string[] | undefined)[]): string[] => [
  ...new Set(lists.flatMap((list = []) => list)),
];

const planStep = (after: NodePlan, { before, prefixes, step }: Transition, endpoints: Endpoints): NodePlan => {
  const changed = changedPrefixes(before, after, endpoints).intersection(prefixes);
  if (changed.size === 0) return after;
  const [sending, other] = step === 'receive' ? [before, after] : [after, before];
  const [sends, takes] = [byPrefix(sending), byPrefix(other)];
  const blocks = after.blocks.map((block): BlockPlan => {
    if (!changed.has(block.prefix)) return block;
    const sent = sends.get(block.prefix)!;
    // Native routing says nothing of whose packets may come out of a tunnel: then the other plan does.
    return isNative(sent.to) ? { ...sent, alsoFrom: takes.get(block.prefix)!.to } : sent;
  });
  const { echoes: _, ...rest } = after;
  return {
    ...rest,
    ...echoesOf(sending, after, changed),
    blocks,
    groups: groupsFor(
      blocks,
      step === 'receive' ? { ...before, groups: formerGroups(before, after, endpoints) } : after,
      after,
      before,
    ),
    tunnels: tunnelsOf(before, after),
    alsoPlain: together(after.alsoPlain, plainPrefixes(before, after, changed)),
    alsoPlainBy: together(after.alsoPlainBy, nativeNeighbors(before, changed), nativeNeighbors(after, changed)),
    boundary: { ...after.boundary, entries: together(before.boundary.entries, after.boundary.entries).sort() },
  };
};

/**
 * The plan that is in force on the way to another; that itself where nothing unencrypted changes its way.
 * @param transitions the latest first
 */
export const planTransitions = (target: NodePlan, transitions: readonly Transition[]): NodePlan => {
  const endpoints = endpointsOf(target);
  return transitions.reduce((plan, one) => planStep(plan, one, endpoints), target);
};
