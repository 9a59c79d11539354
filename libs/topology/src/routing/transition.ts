import { AddressSet, formatPrefix, parsePrefix } from '@unbounded/ip';
import type { BlockPlan, Destination, EchoPlan, GroupMember, GroupPlan, NodePlan, TunnelPeer } from '../plan.ts';
import {
  byName,
  byPrefix,
  changedPrefixes,
  type ChangedWays,
  type Endpoints,
  encryptedPeers,
  endpointsOf,
  isNative,
  isOtherProtocol,
  memberKey,
  openPeers,
  openWays,
  stillCarrying,
  wayOf,
} from './changed-ways.ts';

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
export interface Transition extends ChangedWays {
  /** How packets were sent when it began. */
  readonly before: NodePlan;
  /** The plans that it left: what they take is taken until its end. */
  readonly left: readonly NodePlan[];
  readonly step: TransitionStep;
}

/** Blocks that leave, and so come, without a tunnel (protocol None). */
const nativeBlocks = ({ blocks }: NodePlan): BlockPlan[] =>
  blocks.filter(({ to, use }) => isNative(to) && use !== 'unrouted');

const distinct = (texts: Iterable<string>): string[] => [...new Set(texts)];

/** Of the changed prefixes, by the plans of their own changes. */
const formerBlocks = ({ before, left, prefixes }: Transition): BlockPlan[] =>
  [before, ...left].flatMap((plan) => nativeBlocks(plan).filter(({ prefix }) => prefixes.has(prefix)));

/**
 * Blocks that change their way and are reached natively by one of the plans, with the neighbors there; and the addresses of them. What is
 * inside of such a block and reached another way, or lives on this node, is none of these: the longest prefix decides.
 */
const plainOf = (
  target: NodePlan,
  underWay: readonly Transition[],
): Required<Pick<NodePlan, 'alsoPlain' | 'alsoPlainBy'>> => {
  const now = nativeBlocks(target).filter(({ prefix }) => underWay.some(({ prefixes }) => prefixes.has(prefix)));
  const native = Map.groupBy([...now, ...underWay.flatMap(formerBlocks)], ({ prefix }) => prefix);
  const routed = target.blocks.filter(({ use }) => use === undefined || use === 'transit').map(({ prefix }) => prefix);
  const others = [...routed, ...target.podCidrs].filter((prefix) => !native.has(prefix));
  const plain = AddressSet.byLongestPrefix([...native.keys()].map(parsePrefix), others.map(parsePrefix));
  return {
    alsoPlain: plain.toPrefixes().map(formatPrefix),
    alsoPlainBy: [...native].map(([prefix, blocks]) => ({
      prefix,
      gateways: distinct(blocks.flatMap(({ to }) => (isNative(to) ? to.gateways : []))),
    })),
  };
};

const tunnelKey = ({ protocol, remoteIp }: Pick<TunnelPeer, 'protocol' | 'remoteIp'>): string =>
  `${protocol} ${remoteIp}`;

/** The same end, and whose packets come by it according to either plan. */
const bothOf = (then: TunnelPeer, now: TunnelPeer): TunnelPeer => {
  const isSame = then.isTransit === now.isTransit && then.sources.join() === now.sources.join();
  if (isSame) return now;
  return {
    ...now,
    sources: distinct([...then.sources, ...now.sources]).sort(),
    isTransit: then.isTransit || now.isTransit,
  };
};

/** Those of all plans. */
const tunnelsOf = (plans: readonly Pick<NodePlan, 'tunnels'>[]): TunnelPeer[] => {
  const known = new Map<string, TunnelPeer>();
  for (const peer of plans.flatMap(({ tunnels }) => tunnels)) {
    const same = known.get(tunnelKey(peer));
    known.set(tunnelKey(peer), same ? bothOf(same, peer) : peer);
  }
  return [...known.values()];
};

/** A former plan without who is gone or encrypts from now on, or was at an address of who does. */
const openPart = (target: NodePlan): ((former: NodePlan) => NodePlan) => {
  const encrypted = encryptedPeers(target);
  const addresses = new Set(target.holdings.flatMap((own) => (encrypted.has(own.node) ? own.addresses : [])));
  const here = new Set([...target.holdings, ...target.probes, ...target.tunnels].map(({ node }) => node));
  const isOpenPeer = ({ node, remoteIp }: Pick<TunnelPeer, 'node' | 'remoteIp'>): boolean =>
    here.has(node) && !encrypted.has(node) && !addresses.has(remoteIp);
  return (former) => ({
    ...former,
    tunnels: former.tunnels.filter(isOpenPeer),
    groups: former.groups.map((group) => ({
      ...group,
      members: group.members.filter((member) => member.protocol === 'WireGuard' || isOpenPeer(member)),
    })),
  });
};

/** The tunnels by which it was sent when the change began: another end that changes back and forth may send so for long. */
const sentByTunnel = ({ before, prefixes }: Transition): Pick<NodePlan, 'tunnels'> => {
  const groups = byName(before);
  const hops = before.blocks.flatMap(({ prefix, to }) => (prefixes.has(prefix) ? wayOf(to, groups).hops : []));
  const sent = new Set(hops.map((hop) => (hop.protocol === 'WireGuard' ? '' : tunnelKey(hop))));
  return { tunnels: before.tunnels.filter((peer) => sent.has(tunnelKey(peer))) };
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

/** Gateways that are no more carry nothing, and those that are new or of another change carry from now on. */
const formerMembers = (
  former: GroupPlan,
  now: GroupPlan,
  { members, endpoints }: Pick<ChangedWays, 'members'> & { readonly endpoints: Endpoints },
): GroupMember[] =>
  now.members.map((member): GroupMember => {
    if (!members.has(memberKey(now.name, member.node))) return member;
    const then = former.members.find(({ node }) => node === member.node);
    return then && isOtherProtocol(then, member, endpoints) ? { ...then, tier: member.tier } : member;
  });

/** The former groups, with the members that go on carrying in the first step. */
const formerGroups = (
  before: NodePlan,
  after: NodePlan,
  members: ReadonlySet<string>,
  endpoints: Endpoints,
): GroupPlan[] => {
  const [now, peers] = [byName(after), openPeers(after)];
  return before.groups.map((group) => {
    const same = now.get(group.name);
    return {
      ...group,
      members: same ? formerMembers(group, same, { members, endpoints }) : stillCarrying(group, { peers, endpoints }),
    };
  });
};

/** Who is still at the first step sends as before. */
const sendingFormer = (after: NodePlan, transition: Transition, endpoints: Endpoints): NodePlan => {
  const { before, prefixes, members } = transition;
  const changed = changedPrefixes(before, after, endpoints).intersection(prefixes);
  if (changed.size === 0) return after;
  const former = byPrefix(before);
  const blocks = after.blocks.map((block): BlockPlan => {
    if (!changed.has(block.prefix)) return block;
    const { alsoFrom: _, ...sent } = former.get(block.prefix)!;
    return sent;
  });
  const { echoes: _, ...rest } = after;
  const groups = formerGroups(before, after, members, endpoints);
  return {
    ...rest,
    ...echoesOf(before, after, changed),
    blocks,
    groups: groupsFor(blocks, { ...before, groups }, after, before),
  };
};

/** Native routing says nothing of whose packets may come out of a tunnel: the first other plan with a tunnel does. */
const withTunnels = (blocks: readonly BlockPlan[], target: NodePlan, underWay: readonly Transition[]): BlockPlan[] => {
  const lookUp = (plan: NodePlan) => ({ blocks: byPrefix(plan), groups: byName(plan) });
  const now = lookUp(target);
  const former = underWay.map(({ prefixes, left }) => ({ prefixes, plans: left.map(lookUp) }));
  const tunnelTo = (prefix: string): Destination | undefined =>
    [now, ...former.flatMap(({ prefixes, plans }) => (prefixes.has(prefix) ? plans : []))]
      .map((plan) => ({ to: plan.blocks.get(prefix)?.to, groups: plan.groups }))
      .find(({ to, groups }) => to !== undefined && wayOf(to, groups).carriage === 'tunnel')?.to;
  return blocks.map((block) => {
    const also = isNative(block.to) ? tunnelTo(block.prefix) : undefined;
    return also === undefined ? block : { ...block, alsoFrom: also };
  });
};

/**
 * The plan that is in force on the way to another; that itself where nothing unencrypted changes its way.
 * @param transitions the latest first
 */
export const planTransitions = (target: NodePlan, transitions: readonly Transition[]): NodePlan => {
  const withoutOthers = openPart(target);
  const underWay = openWays(transitions, target).map((one) => ({
    ...one,
    before: withoutOthers(one.before),
    left: one.left.map(withoutOthers),
  }));
  if (underWay.length === 0) return target;
  const endpoints = endpointsOf(target);
  const sending = underWay
    .filter(({ step }) => step === 'receive')
    .reduce((plan, one) => sendingFormer(plan, one, endpoints), target);
  const left = underWay.flatMap((one) => one.left);
  const blocks = withTunnels(sending.blocks, target, underWay);
  return {
    ...sending,
    blocks,
    groups: groupsFor(blocks, sending, target, ...left),
    // Newer plans know better what a peer's tunnel carries.
    tunnels: tunnelsOf([target, ...underWay.map(sentByTunnel), ...left].toReversed()),
    ...plainOf(target, underWay),
    boundary: {
      ...target.boundary,
      entries: distinct([...left, target].flatMap(({ boundary }) => boundary.entries)).sort(),
    },
  };
};
