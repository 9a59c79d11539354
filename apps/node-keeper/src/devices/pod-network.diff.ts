import type { PodNetwork } from '@unbounded/keeper-protocol';
import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { formatPrefix, parsePrefix } from '@unbounded/ip';
import type { LinkAddress, Route, RouteSpec, Rule, RuleSpec } from '@unbounded/netlink';

/**
 * What is to change in a pod's network namespace, so that its device's interface, rules and tables are what the unit says. What has another
 * protocol than ours is the pod's.
 */

/** A metric of 0 is this one in IPv6 (IP6_RT_PRIO_USER). */
const IPV6_DEFAULT_METRIC = 1024;
/** IFA_F_NODAD: nobody else can have the address. */
const WITHOUT_DUPLICATE_DETECTION = 0x02;

export interface FoundNetwork {
  readonly addresses: readonly LinkAddress[];
  readonly rules: readonly Rule[];
  readonly routes: readonly Route[];
}

interface Diff<Spec> {
  readonly add: readonly Spec[];
  readonly remove: readonly Spec[];
}

export interface NetworkDiff {
  readonly addresses: Diff<LinkAddress>;
  readonly rules: Diff<RuleSpec>;
  /** Without the interface: they stand before it is up. */
  readonly otherRoutes: Diff<RouteSpec>;
  readonly deviceRoutes: Diff<RouteSpec>;
}

const canonical = (prefix: string): string => formatPrefix(parsePrefix(prefix));
const familyOf = (text: string): 4 | 6 => (text.includes(':') ? 6 : 4);
const metricOf = (dst: string, metric = 0): number =>
  metric === 0 && familyOf(dst) === 6 ? IPV6_DEFAULT_METRIC : metric;

const diff = <Spec>(wanted: readonly Spec[], found: readonly Spec[], keyOf: (spec: Spec) => string): Diff<Spec> => {
  const [want, have] = [new Set(wanted.map(keyOf)), new Set(found.map(keyOf))];
  return {
    add: wanted.filter((spec) => !have.has(keyOf(spec))),
    remove: found.filter((spec) => !want.has(keyOf(spec))),
  };
};

const addressKey = ({ address }: LinkAddress): string => address;
const ruleKey = ({ priority, dst = '', table }: RuleSpec): string => `${priority} ${dst} ${table}`;
const routeKey = ({ table, dst, type = 'unicast', metric, link }: RouteSpec): string =>
  `${table} ${dst} ${metricOf(dst, metric)} ${type} ${type === 'unicast' ? link : ''}`;

const wantedRoute = (link: number, { table, to, kind, metric }: PodNetwork['routes'][number]): RouteSpec => ({
  ...{ dst: canonical(to), table, metric, protocol: ROUTE_PROTOCOL },
  ...(kind === 'device' ? { link } : { type: kind }),
});

/**
 * @param link index of the device's interface
 * @param hasIPv6 false: what is of IPv6 and needs the interface is left out; rules and other routes stand all the same
 */
export const diffNetwork = (wanted: PodNetwork, found: FoundNetwork, link: number, hasIPv6: boolean): NetworkDiff => {
  const reaches = (text: string): boolean => hasIPv6 || familyOf(text) === 4;
  const addresses = wanted.addresses.filter(reaches).map((address): LinkAddress => {
    const full = canonical(`${address}/${familyOf(address) === 6 ? 128 : 32}`);
    return { link, address: full, ...(familyOf(address) === 6 && { flags: WITHOUT_DUPLICATE_DETECTION }) };
  });
  const rules = wanted.rules.map(({ priority, to, table }): RuleSpec => {
    const dst = canonical(to);
    return { family: familyOf(dst), priority, dst, table, protocol: ROUTE_PROTOCOL };
  });
  const routes = wanted.routes.map((route) => wantedRoute(link, route));
  const isOurs = ({ protocol }: { readonly protocol?: number }): boolean => protocol === ROUTE_PROTOCOL;
  const routesOf = (specs: readonly RouteSpec[], byDevice: boolean): RouteSpec[] =>
    specs.filter(({ type = 'unicast', dst }) => (type === 'unicast') === byDevice && (!byDevice || reaches(dst)));
  return {
    addresses: diff(
      addresses,
      found.addresses.filter((one) => one.link === link && one.scope !== 'link'),
      addressKey,
    ),
    rules: diff(rules, found.rules.filter(isOurs), ruleKey),
    otherRoutes: diff(routesOf(routes, false), routesOf(found.routes.filter(isOurs), false), routeKey),
    deviceRoutes: diff(routesOf(routes, true), routesOf(found.routes.filter(isOurs), true), routeKey),
  };
};
