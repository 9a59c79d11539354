import {
  DEVICES,
  EGRESS_MARK_MASK,
  EGRESS_MARKS,
  EGRESS_ROUTE_PROTOCOL,
  EGRESS_RULE_PRIORITIES,
  EGRESS_TABLES,
} from '@unbounded/config/ownership';
import { fingerprint } from '@unbounded/egress';
import type { IpFamily, RouteSpec, RuleSpec } from '@unbounded/netlink';
import { ofFamily } from '../../kernel/address-sets.ts';
import { FAMILIES, type Family, familyOf } from '../../kernel/nft-family.ts';
import { NOT_ROUTED } from './decisions.plan.ts';
import type { EgressPlan, PodClass } from './egress-plan.ts';
import { gatewayOf } from './tunnel.plan.ts';
import { outerFamily } from './tunnel-packets.plan.ts';
import { planRouteTable, type TableRoute } from './route-table.plan.ts';

/**
 * Routes and rules of egress. The table of a class of pods has its number from what it holds: another content is another table, which is
 * complete before a pod's rule leads to it. What nftables has not marked reaches the cluster alone.
 */

export interface EgressRouting {
  readonly routes: readonly RouteSpec[];
  readonly rules: readonly RuleSpec[];
}

const IP_FAMILY: Readonly<Record<Family, IpFamily>> = { ip: 4, ip6: 6 };
const EVERYTHING: Readonly<Record<Family, string>> = { ip: '0.0.0.0/0', ip6: '::/0' };
const PREFIX_BITS: Readonly<Record<Family, number>> = { ip: 32, ip6: 128 };
const withLength = (text: string): string => (text.includes('/') ? text : `${text}/${PREFIX_BITS[familyOf(text)]}`);

const { firstOfPods, lastOfPods } = EGRESS_TABLES;

/** The numbers of tables by their content; of two that would have the same one the second has the next. */
const tableNumbers = (contents: readonly string[]): ReadonlyMap<string, number> => {
  const numbers = new Map<string, number>();
  const taken = new Set<number>();
  for (const content of [...new Set(contents)].sort()) {
    let number = firstOfPods + (Number.parseInt(fingerprint(content), 16) % (lastOfPods - firstOfPods + 1));
    while (taken.has(number)) number = number === lastOfPods ? firstOfPods : number + 1;
    taken.add(number);
    numbers.set(content, number);
  }
  return numbers;
};

const protocol = EGRESS_ROUTE_PROTOCOL;

type Gateways = (node: string, family: Family) => string | undefined;

/** Indices of devices by name. */
export type Links = ReadonlyMap<string, number>;

/** How a route of a table becomes one of the kernel: what leads to nobody is unreachable. */
const createRouteOf =
  (gateways: Gateways, links: Links) =>
  ({ prefix, via }: TableRoute, table: number): RouteSpec => {
    const own = { dst: prefix, table, protocol };
    if (via === 'main') return { ...own, type: 'throw' };
    if (via === 'nowhere') return { ...own, type: 'unreachable' };
    const [gateway, device] =
      'owner' in via ? [gateways(via.owner, familyOf(prefix)), DEVICES.egress] : [via.router, via.device];
    const link = links.get(device);
    return gateway === undefined || link === undefined
      ? { ...own, type: 'unreachable' }
      : { ...own, gateway, onlink: true, link };
  };

const addressesOf = (classes: readonly PodClass[], family: Family) =>
  classes.flatMap(({ pods }) =>
    pods.flatMap(({ node, addresses }) => ofFamily(family, addresses).map((address) => ({ node, address }))),
  );

const mark = (value: number) => ({ value, mask: EGRESS_MARK_MASK });

/** The table of a class, if it has any. */
type TableOf = (own: PodClass) => number | undefined;

/** Packets that get an egress address here, in pods' classes that leave by a router. */
const leavingRules = (plan: EgressPlan, family: Family, tableOf: TableOf): RuleSpec[] => {
  const rulesOf = (classes: readonly PodClass[], iif: string): RuleSpec[] =>
    classes.flatMap((podClass) => {
      const table = tableOf(podClass);
      if (table === undefined) return [];
      return addressesOf([podClass], family).map(({ address }) => ({
        ...{ family: IP_FAMILY[family], protocol, priority: EGRESS_RULE_PRIORITIES.leave },
        ...{ src: withLength(address), iif, mark: mark(EGRESS_MARKS.translate), table },
      }));
    });
  return [...rulesOf(plan.steered, DEVICES.bridge), ...rulesOf(plan.translated, DEVICES.egress)];
};

const rulesOf = (plan: EgressPlan, family: Family, tableOf: (own: PodClass) => number): RuleSpec[] => {
  const own = { family: IP_FAMILY[family], protocol };
  const { steer, answer, unmarkedPods, unmarkedTunnel } = EGRESS_RULE_PRIORITIES;
  const ofPods = plan.steered.flatMap((podClass) =>
    addressesOf([podClass], family).flatMap(({ address }): RuleSpec[] => {
      const from = { ...own, src: withLength(address), iif: DEVICES.bridge };
      return [
        { ...from, priority: steer, mark: mark(EGRESS_MARKS.steer), table: tableOf(podClass) },
        { ...from, priority: unmarkedPods, mark: mark(0), table: EGRESS_TABLES.cluster },
      ];
    }),
  );
  return [
    ...ofPods,
    ...(addressesOf(plan.translated, family).length > 0
      ? [{ ...own, priority: answer, mark: mark(EGRESS_MARKS.answer), table: EGRESS_TABLES.answers }]
      : []),
    { ...own, priority: unmarkedTunnel, iif: DEVICES.egress, mark: mark(0), action: 'blackhole' },
  ];
};

/** Destinations that selected pods reach while nothing marks their packets. */
const clusterRoutes = (plan: EgressPlan, family: Family): RouteSpec[] => {
  const table = EGRESS_TABLES.cluster;
  const reached = [...new Set([...plan.cluster.map(withLength), ...NOT_ROUTED[family]])];
  return [
    ...ofFamily(family, reached).map((dst): RouteSpec => ({ dst, table, protocol, type: 'throw' })),
    { dst: EVERYTHING[family], table, protocol, type: 'unreachable' },
  ];
};

const hasRouter = (content: readonly TableRoute[]): boolean =>
  content.some(({ via }) => typeof via === 'object' && 'router' in via);

/** The tables of one family, and which one each class has. */
const planTables = (plan: EgressPlan, family: Family) => {
  const withContent = (own: PodClass) => [own, planRouteTable(family, own.routes, plan)] as const;
  const contents = new Map([
    ...plan.steered.map(withContent),
    // Of pods elsewhere only where packets leave by a router: those of others leave by the main table.
    ...plan.translated.map(withContent).filter(([, content]) => hasRouter(content)),
  ]);
  const texts = new Map([...contents].map(([own, content]) => [own, JSON.stringify(content)]));
  const numbers = tableNumbers([...texts.values()]);
  const numberOf = (own: PodClass): number => numbers.get(texts.get(own)!)!;
  return {
    tables: new Map([...contents].map(([own, content]) => [numberOf(own), content])),
    numberOf,
    leavingTableOf: (own: PodClass): number | undefined =>
      hasRouter(contents.get(own) ?? []) ? numberOf(own) : undefined,
  };
};

/** @param links the tunnel's device among them, if it is there */
export const planRouting = (plan: EgressPlan, links: Links): EgressRouting => {
  const peers = new Map(plan.peers.map(({ node, overlayAddresses }) => [node, overlayAddresses]));
  const gateways: Gateways = (node, family) => gatewayOf(peers.get(node) ?? [], family, outerFamily(plan));
  const routeOf = createRouteOf(gateways, links);
  const routes: RouteSpec[] = [];
  const rules: RuleSpec[] = [];
  for (const family of FAMILIES) {
    const { tables, numberOf, leavingTableOf } = planTables(plan, family);
    for (const [number, content] of tables) routes.push(...content.map((route) => routeOf(route, number)));
    if (plan.steered.length > 0) routes.push(...clusterRoutes(plan, family));
    for (const { node, address } of addressesOf(plan.translated, family))
      routes.push(routeOf({ prefix: withLength(address), via: { owner: node } }, EGRESS_TABLES.answers));
    rules.push(...rulesOf(plan, family, numberOf), ...leavingRules(plan, family, leavingTableOf));
  }
  return { routes, rules };
};
