import type { BlockPlan, Destination, EchoPlan, GroupPlan, NextHop, NodePlan, TunnelPeer } from '../plan.ts';

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

type Carriage = 'encrypted' | 'tunnel' | 'native' | 'other';

const hopText = (hop: NextHop): string =>
  hop.protocol === 'WireGuard' ? hop.device : `${hop.protocol} ${hop.remoteIp}`;

const carriageOf = ({ protocol }: NextHop): Carriage => (protocol === 'WireGuard' ? 'encrypted' : 'tunnel');

/** How packets to a destination leave, and a text that is another when they leave another way. */
const describe = (to: Destination, groups: ReadonlyMap<string, GroupPlan>): { carriage: Carriage; text: string } => {
  if (to === 'pending') return { carriage: 'other', text: '' };
  if ('gateways' in to) return { carriage: 'native', text: to.gateways.join() };
  if ('nextHop' in to) return { carriage: carriageOf(to.nextHop), text: hopText(to.nextHop) };
  const members = groups.get(to.group)?.members ?? [];
  const kinds = new Set(members.map(carriageOf));
  const carriage = kinds.has('encrypted') ? 'encrypted' : kinds.has('tunnel') ? 'tunnel' : 'other';
  return { carriage, text: members.map(hopText).join() };
};

const byName = ({ groups }: NodePlan): Map<string, GroupPlan> => new Map(groups.map((group) => [group.name, group]));
const byPrefix = ({ blocks }: NodePlan): Map<string, BlockPlan> =>
  new Map(blocks.map((block) => [block.prefix, block]));

const isOpen = (carriage: Carriage): boolean => carriage === 'tunnel' || carriage === 'native';

/** Prefixes whose packets go unencrypted before and after, but another way. */
export const changedPrefixes = (before: NodePlan, after: NodePlan): Set<string> => {
  const [old, oldGroups, groups] = [byPrefix(before), byName(before), byName(after)];
  const changed = after.blocks.filter(({ prefix, to }) => {
    const known = old.get(prefix);
    if (!known) return false;
    const [then, now] = [describe(known.to, oldGroups), describe(to, groups)];
    return isOpen(then.carriage) && isOpen(now.carriage) && (then.carriage !== now.carriage || then.text !== now.text);
  });
  return new Set(changed.map(({ prefix }) => prefix));
};

/** Without a tunnel (protocol None). */
export const isNative = (to: Destination): boolean => typeof to === 'object' && 'gateways' in to;

/** Blocks that leave, and so come, without a tunnel (protocol None). */
const nativePrefixes = ({ blocks }: NodePlan): string[] =>
  blocks.filter(({ to, use }) => isNative(to) && use !== 'unrouted').map(({ prefix }) => prefix);

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

/** A plan for a step between two; `after` itself where nothing unencrypted changes its way. */
export const planTransition = (before: NodePlan, after: NodePlan, step: TransitionStep): NodePlan => {
  const changed = changedPrefixes(before, after);
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
  const native = [...nativePrefixes(before), ...nativePrefixes(after)].filter((prefix) => changed.has(prefix));
  return {
    ...rest,
    ...echoesOf(sending, after, changed),
    blocks,
    groups: groupsFor(blocks, sending, after, before),
    tunnels: tunnelsOf(before, after),
    alsoPlain: [...new Set(native)].sort(),
    boundary: {
      ...after.boundary,
      entries: [...new Set([...before.boundary.entries, ...after.boundary.entries])].sort(),
    },
  };
};
