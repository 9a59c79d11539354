import type { EndpointPlan, GroupPlan, NodePlan, RoutePlan, TunnelSender } from '../plan.ts';

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

type Way = 'encrypted' | 'tunnel' | 'plain' | 'other';

const hopText = ({ device, remoteIp }: { readonly device: string; readonly remoteIp?: string }): string =>
  `${device} ${remoteIp ?? ''}`;

/** How packets to a prefix leave under a plan: by entries of the endpoint maps or, under the netlink data path, by routes. */
const ways = (plan: NodePlan): Map<string, { readonly way: Way; readonly what: string }> => {
  const groups = new Map(plan.groups.map((group) => [group.name, group.members]));
  const encrypting = new Set(plan.wireGuard.map(({ name }) => name));
  const wayOf = (device: string): Way => (encrypting.has(device) ? 'encrypted' : 'tunnel');
  const wayOfGroup = (name: string) => {
    const members = groups.get(name) ?? [];
    const kinds = new Set(members.map(({ device }) => wayOf(device)));
    const way: Way = kinds.has('encrypted') ? 'encrypted' : kinds.has('tunnel') ? 'tunnel' : 'other';
    return { way, what: members.map(hopText).join() };
  };
  const found = new Map<string, { way: Way; what: string }>();
  for (const { prefix, via } of plan.endpoints)
    if ('nextHop' in via) found.set(prefix, { way: wayOf(via.nextHop.device), what: hopText(via.nextHop) });
    else found.set(prefix, wayOfGroup(via.group));
  for (const { prefix, via } of [...plan.routes, ...(plan.transitRoutes ?? [])]) {
    if (typeof via === 'string') continue;
    if ('gateways' in via) found.set(prefix, { way: 'plain', what: via.gateways.join() });
    else if ('group' in via) found.set(prefix, wayOfGroup(via.group));
    else found.set(prefix, { way: wayOf(via.device), what: hopText(via) });
  }
  return found;
};

const isOpen = (way: Way | undefined): boolean => way === 'tunnel' || way === 'plain';

/** Prefixes whose packets go unencrypted before and after, but another way. */
export const changedPrefixes = (before: NodePlan, after: NodePlan): Set<string> => {
  if (before.dataplane !== after.dataplane) return new Set();
  const old = ways(before);
  const changed = [...ways(after)].filter(([prefix, { way, what }]) => {
    const known = old.get(prefix);
    return known !== undefined && isOpen(known.way) && isOpen(way) && (known.way !== way || known.what !== what);
  });
  return new Set(changed.map(([prefix]) => prefix));
};

const byPrefix = <T extends { readonly prefix: string }>(entries: readonly T[]): Map<string, T> =>
  new Map(entries.map((entry) => [entry.prefix, entry]));

/** The entries of `main` and, for prefixes that it does not have, those of `other`. */
const withMissing = (main: readonly EndpointPlan[], other: readonly EndpointPlan[]): EndpointPlan[] => {
  const known = byPrefix(main);
  return [...main, ...other.filter(({ prefix }) => !known.has(prefix))];
};

const groupsOf = (endpoints: readonly EndpointPlan[], routes: readonly RoutePlan[]): Set<string> =>
  new Set([
    ...endpoints.flatMap(({ via }) => ('group' in via ? [via.group] : [])),
    ...routes.flatMap(({ via }) => (typeof via === 'object' && 'group' in via ? [via.group] : [])),
  ]);

/** Groups by their names, each taken from the first plan that has it. */
const groupsFor = (named: ReadonlySet<string>, ...plans: readonly NodePlan[]): GroupPlan[] => {
  const known = new Map(
    plans.toReversed().flatMap(({ groups }) => groups.map((group) => [group.name, group] as const)),
  );
  return [...named].sort().flatMap((name) => known.get(name) ?? []);
};

/** Blocks that leave, and so come, without a tunnel (protocol None). */
export const plainPrefixes = (plan: NodePlan): string[] =>
  plan.routes.flatMap(({ prefix, via }) => (typeof via === 'object' && 'gateways' in via ? [prefix] : []));

/** Those of both plans, but nobody who encrypts from now on. */
const sendersOf = (before: NodePlan, after: NodePlan): TunnelSender[] => {
  const encrypting = new Set(after.wireGuard.flatMap(({ peers }) => peers.map(({ node }) => node)));
  return [...(before.senders ?? []).filter(({ node }) => !encrypting.has(node)), ...(after.senders ?? [])];
};

/** A plan for a step between two; `after` itself where nothing unencrypted changes its way. */
export const planTransition = (before: NodePlan, after: NodePlan, step: TransitionStep): NodePlan => {
  const changed = changedPrefixes(before, after);
  if (changed.size === 0) return after;
  const moving = (entries: readonly EndpointPlan[]): EndpointPlan[] =>
    entries.filter(({ prefix }) => changed.has(prefix));
  const movingRoutes = (routes: readonly RoutePlan[]): RoutePlan[] =>
    routes.filter(({ prefix }) => changed.has(prefix));
  const sending = step === 'receive' ? before : after;
  const staying = after.endpoints.filter(({ prefix }) => !changed.has(prefix));
  // Plain routing has no entry: then the other plan's says whose packets may come out of a tunnel.
  const endpoints = [
    ...staying,
    ...withMissing(moving(sending.endpoints), moving([...before.endpoints, ...after.endpoints])),
  ];
  const stepOf = (of: (plan: NodePlan) => readonly RoutePlan[]): RoutePlan[] => [
    ...of(after).filter(({ prefix }) => !changed.has(prefix)),
    ...movingRoutes(of(sending)),
  ];
  const routes = stepOf((plan) => plan.routes);
  const transitRoutes = stepOf((plan) => plan.transitRoutes ?? []);
  const devices = new Map([...before.tunnels, ...after.tunnels].map((tunnel) => [tunnel.device, tunnel]));
  const alsoPlain = plainPrefixes(before).filter((prefix) => changed.has(prefix));
  return {
    ...after,
    endpoints,
    routes,
    ...(transitRoutes.length === 0 ? {} : { transitRoutes }),
    groups: groupsFor(groupsOf(endpoints, [...routes, ...transitRoutes]), sending, after, before),
    tunnels: [...devices.values()],
    forwarders: [...new Set([...before.forwarders, ...after.forwarders])].sort(),
    ...(after.senders ? { senders: sendersOf(before, after) } : {}),
    alsoPlain: [...new Set([...alsoPlain, ...plainPrefixes(after).filter((prefix) => changed.has(prefix))])].sort(),
  };
};
