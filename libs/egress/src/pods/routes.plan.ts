import type { EgressRoute } from '@unbounded/crds';
import { formatPrefix } from '@unbounded/ip';

import type { RuleAddress } from '../addresses/rule-address.ts';
import type { Ownership } from '../owners/owners.plan.ts';
import { preferred } from '../rendezvous.ts';
import type { Rule } from '../rules/rule.ts';
import type { EffectiveRules } from './effective-rules.ts';

/** A route with a text that is equal for equal routes. */
export interface KeyedRoute {
  readonly key: string;
  readonly route: EgressRoute;
}

const DROP_EVERYTHING: KeyedRoute = {
  key: 'too many rules',
  route: { rule: 'none: too many rules', destinations: ['0.0.0.0/0', '::/0'], whenUnavailable: 'Drop' },
};
/** Ends the list of a pod that has more rules than fit: nothing leaves with an address that no rule gave. */
export const dropEverything = (): KeyedRoute => DROP_EVERYTHING;

interface RouteContext {
  readonly addressesOf: (rule: Rule) => readonly RuleAddress[];
  readonly ownershipOf: (address: string) => Ownership | undefined;
}

type RouteOf = (rule: Rule, podUid: string) => KeyedRoute;

/** A pod keeps one address of each family of a rule, whatever other pods, rules and owners do. */
const createRouteOf = ({ addressesOf, ownershipOf }: RouteContext): RouteOf => {
  const choices = new Map<string, readonly (readonly string[])[]>();
  const known = new Map<string, KeyedRoute>();
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
    const route = {
      rule: rule.key,
      destinations: rule.destinations.map(formatPrefix),
      ...(rule.except.length === 0 ? {} : { except: rule.except.map(formatPrefix) }),
      ...(egress.length === 0 ? {} : { egress }),
      whenUnavailable: rule.whenUnavailable,
    };
    known.set(key, { key, route });
    return { key, route };
  };
};

/** The routes of pods, in the order in which they are tried. */
export const createRoutes = (
  context: RouteContext,
): ((effective: EffectiveRules, podUid: string) => readonly KeyedRoute[]) => {
  const routeOf = createRouteOf(context);
  return ({ rules, excess }, podUid) => [
    ...rules.map((rule) => routeOf(rule, podUid)),
    ...(excess.length > 0 ? [dropEverything()] : []),
  ];
};
