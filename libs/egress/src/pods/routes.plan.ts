import { type EgressRoute, MAX_EGRESS_POD_ROUTES } from '@unbounded/crds';
import { formatPrefix, type Prefix } from '@unbounded/ip';

import { familyOf, type RuleAddress } from '../addresses/rule-address.ts';
import type { Ownership } from '../owners/owners.plan.ts';
import { preferred } from '../rendezvous.ts';
import type { Rule } from '../rules/rule.ts';
import type { EffectiveRules } from './effective-rules.ts';

/** A route with a text that is equal for equal routes. */
export interface KeyedRoute {
  readonly key: string;
  readonly route: EgressRoute;
  /** Of its JSON in a list: counted once, since many pods share a route. */
  readonly bytes: number;
}

const keyedRoute = (key: string, route: EgressRoute): KeyedRoute => ({
  key,
  route,
  bytes: JSON.stringify(route).length + ','.length,
});

const DROP_EVERYTHING = keyedRoute('too many rules', {
  rule: 'none: too many rules',
  destinations: ['0.0.0.0/0', '::/0'],
  whenUnavailable: 'Drop',
});
/** Ends the list of a pod that has more rules than fit: nothing leaves with an address that no rule gave. */
export const dropEverything = (): KeyedRoute => DROP_EVERYTHING;

interface RouteContext {
  readonly addressesOf: (rule: Rule) => readonly RuleAddress[];
  readonly ownershipOf: (address: string) => Ownership | undefined;
}

type RoutesOf = (rule: Rule, podUid: string) => readonly KeyedRoute[];

/**
 * whenUnavailable is for an address that nobody can send with at present. Where a rule has none, since it is written wrong or for the other
 * family alone, no owner is awaited: such a family gets a route of its own, which drops.
 */
const byAvailability = (rule: Rule, chosen: readonly string[]): readonly (readonly Prefix[])[] => {
  const families = new Set(chosen.map(familyOf));
  if (rule.whenUnavailable === 'Drop' || families.size === 0) return [rule.destinations];
  const [served, rest] = [true, false].map((isServed) =>
    rule.destinations.filter(({ family }) => families.has(family) === isServed),
  );
  return [served!, rest!].filter((destinations) => destinations.length > 0);
};

/** A pod keeps one address of each family of a rule, whatever other pods, rules and owners do. */
const createRoutesOf = ({ addressesOf, ownershipOf }: RouteContext): RoutesOf => {
  const choices = new Map<string, readonly (readonly string[])[]>();
  const known = new Map<string, readonly KeyedRoute[]>();
  const choicesOf = (rule: Rule): readonly (readonly string[])[] => {
    const found =
      choices.get(rule.key) ??
      rule.families.map((family) =>
        addressesOf(rule)
          .filter(({ address, isUsable }) => isUsable && address.family === family)
          .map(({ text }) => text),
      );
    choices.set(rule.key, found);
    return found;
  };
  return (rule, podUid) => {
    const chosen = choicesOf(rule).flatMap((texts) => preferred(podUid, texts) ?? []);
    const key = [rule.key, ...chosen].join(' ');
    const found = known.get(key);
    if (found) return found;
    const egress = chosen.map((address) => {
      const owner = ownershipOf(address)?.owner;
      return { address, ...(owner === undefined ? {} : { node: owner }) };
    });
    const routes = byAvailability(rule, chosen).map((destinations, index): KeyedRoute => {
      const families = new Set(destinations.map(({ family }) => family));
      const own = egress.filter(({ address }) => families.has(familyOf(address)));
      const route = {
        rule: rule.key,
        destinations: destinations.map(formatPrefix),
        ...(rule.except.length === 0 ? {} : { except: rule.except.map(formatPrefix) }),
        ...(own.length === 0 ? {} : { egress: own }),
        whenUnavailable: own.length === 0 ? ('Drop' as const) : rule.whenUnavailable,
      };
      return keyedRoute(index === 0 ? key : `${key} rest`, route);
    });
    known.set(key, routes);
    return routes;
  };
};

/** The routes of pods, in the order in which they are tried. */
export const createRoutes = (
  context: RouteContext,
): ((effective: EffectiveRules, podUid: string) => readonly KeyedRoute[]) => {
  const routesOf = createRoutesOf(context);
  return ({ rules, excess }, podUid) => {
    const routes = rules.flatMap((rule) => routesOf(rule, podUid));
    if (excess.length === 0 && routes.length <= MAX_EGRESS_POD_ROUTES) return routes;
    return [...routes.slice(0, MAX_EGRESS_POD_ROUTES - 1), dropEverything()];
  };
};
