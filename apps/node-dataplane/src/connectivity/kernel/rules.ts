import {
  MARK_MASK,
  ROUTE_PROTOCOL,
  RULE_PRIORITY,
  TRANSIT_MARK,
  TRANSIT_ROUTE_TABLE,
  TRANSIT_RULE_PRIORITY,
} from '@unbounded/config/ownership';
import type { RouteSocket, RuleSpec } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { familyOf } from '../../kernel/nft-family.ts';
import { changeRules, isSameRule, listRules } from '../../kernel/routing-rules.ts';

/** The rules that lead into tables of ours: of the netlink data path all packets, and at gateways those in transit to a node. */

const FAMILIES = [4, 6] as const;

/** Families that have a route: a kernel may have no IPv6. */
const familiesOf = (routes: readonly { readonly prefix: string }[]) =>
  FAMILIES.filter((family) => routes.some(({ prefix }) => familyOf(prefix) === (family === 4 ? 'ip' : 'ip6')));

const transitRules = ({ transitRoutes = [] }: KernelPlan): RuleSpec[] =>
  familiesOf(transitRoutes).map((family) => ({
    family,
    priority: TRANSIT_RULE_PRIORITY,
    table: TRANSIT_ROUTE_TABLE,
    mark: { value: TRANSIT_MARK, mask: MARK_MASK },
    protocol: ROUTE_PROTOCOL,
  }));

/** That the plan needs. */
export const rulesOf = (plan: KernelPlan): RuleSpec[] => [
  ...(plan.dataplane === 'netlink'
    ? familiesOf(plan.routes).map((family) => ({
        family,
        priority: RULE_PRIORITY,
        table: plan.routeTable,
        protocol: ROUTE_PROTOCOL,
      }))
    : []),
  ...transitRules(plan),
];

/** Whether packets in transit find their routes: before that none may be told to look for them. */
export const hasTransitRules = async (net: RouteSocket, plan: KernelPlan): Promise<boolean> => {
  const wanted = transitRules(plan);
  if (wanted.length === 0) return true;
  const present = await listRules(net, ROUTE_PROTOCOL);
  return wanted.every((rule) => present.some((seen) => isSameRule(rule, seen)));
};

const foreignRule = ({ family, priority, table }: RuleSpec): Problem => ({
  reason: 'ForeignRule',
  message: `an IPv${family} rule with priority ${priority} that looks up table ${table} exists that is not ours, and is kept: ours is not installed, and when that one goes packets do not enter the overlay until the next pass; remove it with "ip rule del"`,
});

/** The rules that the plan needs, and none without one. Those of others are kept. */
export const ensureRules = async (net: RouteSocket, plan: KernelPlan | undefined): Promise<Problem[]> => {
  const present = await listRules(net, ROUTE_PROTOCOL);
  return (await changeRules(net, present, plan ? rulesOf(plan) : [])).map(foreignRule);
};
