import { existsSync, readFileSync } from 'node:fs';
import { CONNECTIVITY, keptPlanFile } from '@unbounded/config/ownership';
import type { BlockPlan, NodePlan } from '@unbounded/topology';
import type { LabLayout } from '../layout/layout.ts';
import { nodeFile } from '../node/node.ts';

/** What carries the links of the lab, from the plans that the agents keep on their nodes. */

/** The parts of a node's plan that name a peer and how it is reached. */
export type PlanLinks = Pick<NodePlan, 'node' | 'wireGuard' | 'groups' | 'blocks'>;

interface Hop {
  readonly node: string | undefined;
  readonly protocol: string;
}

/** Peers that packets to a block go to: through a tunnel, or by plain routing to gateways. */
const peersTo = ({ to }: BlockPlan, nodeAt: (ip: string) => string | undefined): readonly Hop[] => {
  if (typeof to === 'string' || 'group' in to) return [];
  if ('nextHop' in to) return [to.nextHop];
  return to.gateways.map((ip) => ({ node: nodeAt(ip), protocol: 'None' }));
};

/** What stands in for a protocol that no kernel here has: why a link is VXLAN although something else is wished. */
const reason = (layout: LabLayout, isInside: boolean, used: string, able: ReadonlySet<string>): string => {
  const { protocol } = layout.options;
  const wished = isInside && protocol !== 'Auto' ? protocol : 'GENEVE';
  return used === 'VXLAN' && wished !== 'VXLAN' && !able.has(wished) ? ` (this kernel has no ${wished})` : '';
};

/**
 * A line for each kind of link: what carries it, and inside or between which sites. `able`: tunnel protocols that the
 * nodes say they can do.
 */
export const linkLines = (
  layout: LabLayout,
  plans: readonly PlanLinks[],
  able: ReadonlySet<string>,
): readonly string[] => {
  const siteOf = new Map(layout.nodes.map(({ name, site }) => [name, site]));
  const nodeAt = (ip: string): string | undefined =>
    layout.nodes.find((node) => [...node.internalIps, ...(node.external?.ips ?? [])].includes(ip))?.name;
  const where = new Map<string, Set<string>>(); // by protocol
  for (const plan of plans) {
    const hops: Hop[] = [
      ...plan.wireGuard.flatMap(({ peers }) => peers.map(({ node }) => ({ node, protocol: 'WireGuard' }))),
      ...plan.groups.flatMap(({ members }) => members),
      ...plan.blocks.flatMap((block) => peersTo(block, nodeAt)),
    ];
    for (const { node, protocol } of hops) {
      const [near, far] = [siteOf.get(plan.node), siteOf.get(node ?? '')];
      if (near === undefined || far === undefined) continue;
      const isInside = near === far;
      const place = isInside ? near : near < far ? `${near} - ${far}` : `${far} - ${near}`;
      const kind = `${protocol === 'None' ? 'None, plain routing' : protocol}${reason(layout, isInside, protocol, able)}`;
      where.set(kind, (where.get(kind) ?? new Set()).add(place));
    }
  }
  return [...where].map(([kind, places]) => `${[...places].sort().join(', ')}: ${kind}`).sort();
};

/** The plans that the agents made last; none of a node whose agent has not made any yet, or is of a version that keeps it elsewhere. */
export const readPlans = (layout: LabLayout): NodePlan[] =>
  layout.nodes.flatMap(({ name }) => {
    const file = nodeFile(name, keptPlanFile(CONNECTIVITY));
    return existsSync(file) ? [(JSON.parse(readFileSync(file, 'utf8')) as { readonly plan: NodePlan }).plan] : [];
  });

/** Reads the plans on the nodes and says what carries the links. */
export const describeLinks = (layout: LabLayout, able: ReadonlySet<string>): readonly string[] =>
  linkLines(layout, readPlans(layout), able);
