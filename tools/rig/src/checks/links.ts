import { readFileSync } from 'node:fs';
import type { LabLayout } from '../layout/layout.ts';
import { nodeFile } from '../node/node.ts';

/** What carries the links of the lab, from the plans that the agents keep on their nodes. */

const PLAN_FILE = '/var/lib/unbounded/plan.json';

interface NextHop {
  readonly node?: string;
  readonly protocol?: string;
}

/** The parts of an agent's plan that name a peer and how it is reached. */
export interface PlanLinks {
  readonly node: string;
  readonly mtuBytes: number;
  /** There when a link may go by a relay. */
  readonly relay?: object;
  readonly wireGuard: readonly { readonly peers: readonly { readonly node: string }[] }[];
  readonly endpoints: readonly { readonly via: { readonly nextHop?: NextHop } }[];
  readonly groups: readonly { readonly members: readonly NextHop[] }[];
  readonly routes: readonly { readonly via: unknown }[];
  readonly problems: readonly { readonly reason: string; readonly message: string }[];
}

const DEVICE_PROTOCOLS: readonly (readonly [RegExp, string])[] = [
  [/^vxlan/, 'VXLAN'],
  [/^geneve/, 'GENEVE'],
  [/^ipip/, 'IPIP'],
];

/** Peers that routes lead to without eBPF: by plain routing (gateways), or through a tunnel to a far end. */
const routedPeers = ({ via }: PlanLinks['routes'][number], nodeAt: (ip: string) => string | undefined): NextHop[] => {
  if (typeof via !== 'object' || via === null) return [];
  const { gateways = [], device, remoteIp } = via as { gateways?: string[]; device?: string; remoteIp?: string };
  const plain = gateways.map((ip) => ({ node: nodeAt(ip), protocol: 'None' }));
  const protocol = DEVICE_PROTOCOLS.find(([name]) => name.test(device ?? ''))?.[1];
  return [...plain, ...(protocol && remoteIp ? [{ node: nodeAt(remoteIp), protocol }] : [])].flatMap((hop) =>
    hop.node === undefined ? [] : [{ node: hop.node, protocol: hop.protocol }],
  );
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
    const hops: NextHop[] = [
      ...plan.wireGuard.flatMap(({ peers }) => peers.map(({ node }) => ({ node, protocol: 'WireGuard' }))),
      ...plan.endpoints.flatMap(({ via }) => (via.nextHop ? [via.nextHop] : [])),
      ...plan.groups.flatMap(({ members }) => members),
      ...plan.routes.flatMap((route) => routedPeers(route, nodeAt)),
    ];
    for (const { node, protocol } of hops) {
      const [near, far] = [siteOf.get(plan.node), siteOf.get(node ?? '')];
      if (protocol === undefined || near === undefined || far === undefined) continue;
      const isInside = near === far;
      const place = isInside ? near : near < far ? `${near} - ${far}` : `${far} - ${near}`;
      const kind = `${protocol === 'None' ? 'None, plain routing' : protocol}${reason(layout, isInside, protocol, able)}`;
      where.set(kind, (where.get(kind) ?? new Set()).add(place));
    }
  }
  return [...where].map(([kind, places]) => `${[...places].sort().join(', ')}: ${kind}`).sort();
};

/** The plans that the agents applied last. */
export const readPlans = (layout: LabLayout): PlanLinks[] =>
  layout.nodes.map(({ name }) => JSON.parse(readFileSync(nodeFile(name, PLAN_FILE), 'utf8')) as PlanLinks);

/** Reads the plans on the nodes and says what carries the links. */
export const describeLinks = (layout: LabLayout, able: ReadonlySet<string>): readonly string[] =>
  linkLines(layout, readPlans(layout), able);
