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

const routeOf = ({ prefix, via }: TableRoute, table: number, gateways: Gateways): Omit<RouteSpec, 'link'> => {
  const own = { dst: prefix, table, protocol };
  if (via === 'main') return { ...own, type: 'throw' };
  const gateway = via === 'nowhere' ? undefined : gateways(via.owner, familyOf(prefix));
  return gateway === undefined ? { ...own, type: 'unreachable' } : { ...own, gateway, onlink: true };
};

const byTunnel = (route: Omit<RouteSpec, 'link'>, link: number): RouteSpec =>
  route.gateway === undefined ? route : { ...route, link };

const addressesOf = (classes: readonly PodClass[], family: Family) =>
  classes.flatMap(({ pods }) =>
    pods.flatMap(({ node, addresses }) => ofFamily(family, addresses).map((address) => ({ node, address }))),
  );

const mark = (value: number) => ({ value, mask: EGRESS_MARK_MASK });

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

/** @param link index of the tunnel's device */
export const planRouting = (plan: EgressPlan, link: number): EgressRouting => {
  const peers = new Map(plan.peers.map(({ node, overlayAddresses }) => [node, overlayAddresses]));
  const gateways: Gateways = (node, family) => gatewayOf(peers.get(node) ?? [], family, outerFamily(plan));
  const routes: RouteSpec[] = [];
  const rules: RuleSpec[] = [];
  for (const family of FAMILIES) {
    const contents = plan.steered.map((own) => planRouteTable(family, own.routes, plan.node));
    const texts = contents.map((content) => JSON.stringify(content));
    const numbers = tableNumbers(texts);
    const tables = new Map(plan.steered.map((own, index) => [own, numbers.get(texts[index]!)!]));
    const byNumber = new Map(contents.map((content, index) => [numbers.get(texts[index]!)!, content]));
    for (const [number, content] of byNumber)
      routes.push(...content.map((route) => byTunnel(routeOf(route, number, gateways), link)));
    if (plan.steered.length > 0) routes.push(...clusterRoutes(plan, family));
    for (const { node, address } of addressesOf(plan.translated, family)) {
      const way = routeOf({ prefix: withLength(address), via: { owner: node } }, EGRESS_TABLES.answers, gateways);
      routes.push(byTunnel(way, link));
    }
    rules.push(...rulesOf(plan, family, (own) => tables.get(own)!));
  }
  return { routes, rules };
};
