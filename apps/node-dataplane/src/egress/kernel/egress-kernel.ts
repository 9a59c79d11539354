import { EGRESS_ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import type { Link, RouteSocket, RouteSpec, RuleSpec } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { FAMILIES } from '../../kernel/nft-family.ts';
import { ensureRoutes } from '../../kernel/routes.ts';
import { changeRules, listRules } from '../../kernel/routing-rules.ts';
import type { SectionTable, TableCounts } from '../../kernel/section-table.ts';
import type { EgressPlan } from '../plan/egress-plan.ts';
import { type Links, planRouting } from '../plan/routing.plan.ts';
import { planArpFence, planEgressTable, planFence } from '../plan/tables.plan.ts';
import { planFarEnds, planTunnel } from '../plan/tunnel.plan.ts';
import { ensureFarEnds, ensureTunnel } from './tunnel-device.ts';

/** The kernel's state of egress, but for the addresses themselves. */

export interface EgressKernelParts {
  readonly net: RouteSocket;
  readonly table: (family: 'inet' | 'ip' | 'ip6' | 'arp') => Pick<SectionTable, 'replace' | 'changeSingles'>;
  /** Of the table of the family inet; not set: nobody wants to know. */
  readonly counts?: TableCounts;
}

interface EgressOutcome {
  readonly problems: readonly Problem[];
  /** Whether the kernel enforces the whole plan. */
  readonly isInForce: boolean;
}

const failed = (what: string, { message }: Error): Problem => ({
  reason: 'EgressFailed',
  message: `egress addresses: ${what}: ${message}`,
});

/** Not essential: without it an owner that stands still answers ARP, and lets nothing leave all the same. */
const ensureArpFence = async ({ table }: EgressKernelParts, plan: EgressPlan): Promise<Problem[]> => {
  const { error } = await table('arp').replace(planArpFence(plan));
  return error ? [failed('nftables of the family arp: has the kernel CONFIG_NF_TABLES_ARP?', error)] : [];
};

const ensureTables = async ({ table, counts }: EgressKernelParts, plan: EgressPlan): Promise<Problem[]> => {
  const outcomes = [
    ...(await Promise.all(FAMILIES.map((family) => table(family).replace(planFence(family))))),
    await table('inet').replace(planEgressTable(plan), counts),
  ];
  return outcomes.flatMap(({ error }) => (error ? [failed('nftables', error)] : []));
};

/** Of the tunnel, and to routers of addresses; all others are listed only where there are such. */
const linksOf = async (net: RouteSocket, { addresses }: EgressPlan, tunnel: Link | undefined): Promise<Links> => {
  const hasRouters = addresses.some(({ nextHop }) => nextHop !== undefined);
  const links = hasRouters ? await net.links.list() : tunnel ? [tunnel] : [];
  return new Map(links.map(({ name, index }) => [name, index]));
};

export interface EgressKernel {
  apply(plan: EgressPlan): Promise<EgressOutcome>;
  /**
   * From the plan that was applied last and is in force, where pods alone have come or gone, without a look at what is there: what others
   * changed since then is for the next `apply`.
   * @returns false: it is more than that, or the kernel refused it; `apply` it
   */
  changePods(plan: EgressPlan): Promise<boolean>;
  /** What was applied is taken away. */
  forget(): void;
}

/** What the kernel has of a plan, but for its tables. */
interface InForce {
  readonly links: Links;
  readonly rules: readonly RuleSpec[];
  /** All that is not of a single pod. */
  readonly common: string;
}

const commonOf = (plan: EgressPlan, routes: readonly RouteSpec[]): string =>
  JSON.stringify([planTunnel(plan), planFarEnds(plan, 0), routes, planArpFence(plan)]);

const changePods = async (
  { net, table }: EgressKernelParts,
  plan: EgressPlan,
  before: InForce,
): Promise<InForce | undefined> => {
  const { routes, rules } = planRouting(plan, before.links);
  if (commonOf(plan, routes) !== before.common) return undefined;
  if (!(await table('inet').changeSingles(planEgressTable(plan)))) return undefined;
  await changeRules(net, before.rules, rules);
  return { ...before, rules };
};

/**
 * New before old: far ends and routes, then the marks that lead to them, then each pod's rules; what no plan wants goes last. What is
 * between these steps drops packets and lets none out: marks without routes, routes without marks.
 */
const applyAll = async (
  parts: EgressKernelParts,
  plan: EgressPlan,
): Promise<{ readonly problems: readonly Problem[]; readonly inForce?: InForce }> => {
  const { net } = parts;
  const spec = planTunnel(plan);
  if (!spec) {
    const message = 'the node has no address in the overlay yet: pods with egress addresses reach the cluster alone';
    return { problems: [{ reason: 'EgressFailed', message }] };
  }
  const tunnel = await ensureTunnel(net, spec);
  // Without the device the rest is in force all the same: it drops.
  const link = tunnel.link?.index ?? 0;
  const ends = tunnel.link && (await ensureFarEnds(net, link, planFarEnds(plan, link)));
  const links = await linksOf(net, plan, tunnel.link);
  const { routes, rules } = planRouting(plan, links);
  const outcome = await ensureRoutes(net, tunnel.link ? routes : [], EGRESS_ROUTE_PROTOCOL);
  const tableProblems = await ensureTables(parts, plan);
  const arpProblems = await ensureArpFence(parts, plan);
  // One of somebody else that is the same does the same; when it goes a pass is told.
  await changeRules(net, await listRules(net, EGRESS_ROUTE_PROTOCOL), rules);
  const problems = [...tunnel.problems, ...outcome.problems, ...outcome.ofPeers, ...outcome.foreign, ...tableProblems];
  const all = [...problems, ...arpProblems];
  if (problems.length > 0) return { problems: all };
  await outcome.removeStale();
  await ends?.removeStale();
  return { problems: all, inForce: { links, rules, common: commonOf(plan, routes) } };
};

export const createEgressKernel = (parts: EgressKernelParts): EgressKernel => {
  let inForce: InForce | undefined;
  return {
    async apply(plan) {
      inForce = undefined;
      const { problems, inForce: applied } = await applyAll(parts, plan);
      inForce = applied;
      return { problems, isInForce: applied !== undefined };
    },
    async changePods(plan) {
      if (!inForce) return false;
      const before = inForce;
      inForce = undefined;
      inForce = await changePods(parts, plan, before);
      return inForce !== undefined;
    },
    forget() {
      inForce = undefined;
    },
  };
};
