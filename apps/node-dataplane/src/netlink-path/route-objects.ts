import { NEXTHOP_IDS, ROUTE_PROTOCOL, RULE_PRIORITY } from '@unbounded/config/ownership';
import {
  isAbsent,
  type Neighbour,
  type NeighbourSpec,
  type Nexthop,
  type NexthopSpec,
  type RouteSocket,
  type RuleSpec,
} from '@unbounded/netlink';
import type { NodePlan, Problem } from '@unbounded/topology';

/** Brings next hops, neighbours and the rule of the netlink data path into the kernel; groups belong to the thread that probes. */

const isOurs = ({ id, protocol }: Nexthop): boolean =>
  protocol === ROUTE_PROTOCOL && id >= NEXTHOP_IDS.first && id <= NEXTHOP_IDS.last;

/** The fields that we set, in one order. */
const shown = ({ id, link, gateway, encap }: NexthopSpec): string => JSON.stringify([id, link, gateway, encap]);

const failures = (what: string, results: readonly { ok: boolean; error?: Error }[]): Problem[] =>
  results.flatMap(({ ok, error }) => (ok ? [] : [{ reason: 'RouteFailed', message: `${what}: ${error?.message}` }]));

export const ensureNexthops = async (net: RouteSocket, wanted: readonly NexthopSpec[]): Promise<Problem[]> => {
  const present = new Set((await net.nexthops.list()).filter(isOurs).map(shown));
  const changed = wanted.filter((hop) => !present.has(shown(hop)));
  const results = await net.nexthops.apply(changed.map((value) => ({ op: 'replace' as const, value })));
  return failures('next hop', results);
};

/** Next hops that are no more wanted. A device that went took its own along already. */
export const removeStaleNexthops = async (net: RouteSocket, wanted: ReadonlySet<number>): Promise<void> => {
  const stale = (await net.nexthops.list()).filter(
    (hop) => isOurs(hop) && hop.group === undefined && !hop.blackhole && !wanted.has(hop.id),
  );
  const results = await net.nexthops.apply(stale.map((value) => ({ op: 'delete' as const, value })));
  for (const result of results) if (!result.ok && !isAbsent(result.error)) throw result.error;
};

const isSame = (wanted: NeighbourSpec, seen: Neighbour): boolean =>
  seen.family === wanted.family &&
  seen.link === wanted.link &&
  seen.address === wanted.address &&
  seen.mac === wanted.mac &&
  seen.state === 'permanent';

export const ensureNeighbours = async (net: RouteSocket, wanted: readonly NeighbourSpec[]): Promise<Problem[]> => {
  const present = await net.neighbours.list();
  const missing = wanted.filter((entry) => !present.some((seen) => isSame(entry, seen)));
  return failures('neighbour', await net.neighbours.apply(missing.map((value) => ({ op: 'replace' as const, value }))));
};

const rulesOf = (plan: NodePlan | undefined): RuleSpec[] =>
  plan?.dataplane === 'netlink'
    ? ([4, 6] as const).map((family) => ({
        family,
        priority: RULE_PRIORITY,
        table: plan.routeTable,
        protocol: ROUTE_PROTOCOL,
      }))
    : [];

/** The rules that lead into our table, and none when the plan has no table of its own. */
export const ensureRules = async (net: RouteSocket, plan: NodePlan | undefined): Promise<void> => {
  const present = (await net.rules.list()).filter(({ protocol }) => protocol === ROUTE_PROTOCOL);
  const wanted = rulesOf(plan);
  const same = (a: RuleSpec, b: RuleSpec): boolean =>
    a.family === b.family && a.priority === b.priority && a.table === b.table;
  for (const rule of wanted.filter((candidate) => !present.some((seen) => same(candidate, seen))))
    await net.rules.create(rule);
  for (const rule of present.filter((seen) => !wanted.some((candidate) => same(candidate, seen))))
    await net.rules.delete(rule);
};

/** Everything of the netlink data path: nobody's packets go by it any more. */
export const removeNetlinkPath = async (net: RouteSocket): Promise<void> => {
  await ensureRules(net, undefined);
  const ours = (await net.nexthops.list()).filter(isOurs);
  const groupsFirst = ours.toSorted((a, b) => Number(a.group === undefined) - Number(b.group === undefined));
  const results = await net.nexthops.apply(groupsFirst.map((value) => ({ op: 'delete' as const, value })));
  for (const result of results) if (!result.ok && !isAbsent(result.error)) throw result.error;
};
