import { EGRESS_ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import type { Link, RouteSocket } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { FAMILIES } from '../../kernel/nft-family.ts';
import { ensureRoutes } from '../../kernel/routes.ts';
import type { SectionTable, TableCounts } from '../../kernel/section-table.ts';
import type { EgressPlan } from '../plan/egress-plan.ts';
import { type Links, planRouting } from '../plan/routing.plan.ts';
import { planArpFence, planEgressTable, planFence } from '../plan/tables.plan.ts';
import { planFarEnds, planTunnel } from '../plan/tunnel.plan.ts';
import { ensureEgressRules } from './rules.ts';
import { ensureFarEnds, ensureTunnel } from './tunnel-device.ts';

/** The kernel's state of egress, but for the addresses themselves. */

export interface EgressKernelParts {
  readonly net: RouteSocket;
  readonly table: (family: 'inet' | 'ip' | 'ip6' | 'arp') => Pick<SectionTable, 'replace'>;
  /** Of the table of the family inet; not set: nobody wants to know. */
  readonly counts?: TableCounts;
}

export interface EgressOutcome {
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

/**
 * New before old: far ends and routes, then the marks that lead to them, then each pod's rules; what no plan wants goes last. What is
 * between these steps drops packets and lets none out: marks without routes, routes without marks.
 */
export const applyEgress = async (parts: EgressKernelParts, plan: EgressPlan): Promise<EgressOutcome> => {
  const { net } = parts;
  const spec = planTunnel(plan);
  if (!spec) {
    const message = 'the node has no address in the overlay yet: pods with egress addresses reach the cluster alone';
    return { problems: [{ reason: 'EgressFailed', message }], isInForce: false };
  }
  const tunnel = await ensureTunnel(net, spec);
  // Without the device the rest is in force all the same: it drops.
  const link = tunnel.link?.index ?? 0;
  const ends = tunnel.link && (await ensureFarEnds(net, link, planFarEnds(plan, link)));
  const { routes, rules } = planRouting(plan, await linksOf(net, plan, tunnel.link));
  const outcome = await ensureRoutes(net, tunnel.link ? routes : [], EGRESS_ROUTE_PROTOCOL);
  const tableProblems = await ensureTables(parts, plan);
  const arpProblems = await ensureArpFence(parts, plan);
  await ensureEgressRules(net, rules);
  const problems = [...tunnel.problems, ...outcome.problems, ...outcome.ofPeers, ...outcome.foreign, ...tableProblems];
  if (problems.length === 0) {
    await outcome.removeStale();
    await ends?.removeStale();
  }
  return { problems: [...problems, ...arpProblems], isInForce: problems.length === 0 };
};
