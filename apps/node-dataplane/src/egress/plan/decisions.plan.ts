import { DEVICES } from '@unbounded/config/ownership';
import type { ChainSpec, Expression, RuleSpec } from '@unbounded/nftables';
import { isIn } from '../../kernel/address-sets.ts';
import { baseOf, EGRESS_CHAINS } from '../../kernel/base-chains.ts';
import { FAMILIES, type Family } from '../../kernel/nft-family.ts';
import { countAnswers, planAnswers } from './answers.plan.ts';
import { countedBy, type CountedRoute } from './counted-routes.plan.ts';
import type { EgressPlan, PodRoute } from './egress-plan.ts';
import { decide, drop, fromDevice, isAnswer, leftFromHere, openedTo, rule, SETS } from './names.ts';
import { classChains, classJumps, type NamedClass, namedClasses, routeRules, targetOf } from './route-rules.plan.ts';

/**
 * What becomes of a packet, behind the translation of Services and before it is routed: its mark says so. Of selected pods each one gets a
 * mark or is dropped; routes of its own let what has none reach the cluster alone (routing.plan.ts).
 */

const FROM_PODS = 'from_pods';
const FROM_TUNNEL = 'from_tunnel';
const FROM_OUTSIDE = 'from_outside';
const TO_OWNER = 'to_owner';

/** Of packets that leave here, by what they are counted as. */
const chainNames = (routes: readonly CountedRoute[]): ReadonlyMap<CountedRoute, string> =>
  new Map(routes.map((route, index) => [route, `by_rule_${index}`]));

/** Multicast, link-local, loopback: no address of a network beyond. */
export const NOT_ROUTED: Readonly<Record<Family, readonly string[]>> = {
  ip: ['224.0.0.0/4', '169.254.0.0/16', '127.0.0.0/8', '255.255.255.255/32'],
  ip6: ['ff00::/8', 'fe80::/10', '::1/128'],
};

const isInvalid: Expression = { match: 'ct-state', states: ['invalid'] };
const isOfNode: Expression = { match: 'fib-type', address: 'daddr', op: '==', type: 'local' };

/** The chain of packets that leave here by a route. */
type ChainOf = (route: PodRoute, address: string) => string;

const actionAt =
  (plan: EgressPlan, family: Family, chainOf: ChainOf) =>
  (route: PodRoute): readonly Expression[] => {
    const target = targetOf(plan, family, route);
    switch (target.to) {
      case 'anywhere':
        return decide('pass');
      case 'nobody':
        return drop('unavailable');
      case 'owner':
        return [{ do: 'goto', chain: TO_OWNER }];
      case 'here':
        return [{ do: 'goto', chain: chainOf(route, target.address) }];
    }
  };

const steeringRules =
  (plan: EgressPlan, family: Family, chainOf: ChainOf) =>
  (own: NamedClass): RuleSpec[] => [
    rule('to the cluster', isIn(family, 'daddr', SETS.cluster), ...decide('pass')),
    rule('to this node', isOfNode, ...decide('pass')),
    rule('to the API server by its Service', openedTo(family, SETS.apiServices), ...decide('pass')),
    rule('of no connection', isInvalid, ...drop('invalid')),
    ...routeRules(own, family, actionAt(plan, family, chainOf)),
    rule('no rule is about it', ...decide('pass')),
  ];

const servingRules =
  (plan: EgressPlan, family: Family, chainOf: ChainOf) =>
  (own: NamedClass): RuleSpec[] => [
    rule('to the cluster', isIn(family, 'daddr', SETS.cluster), ...drop('stray')),
    rule('to this node', isOfNode, ...drop('stray')),
    rule('of no connection', isInvalid, ...drop('invalid')),
    ...routeRules(own, family, (route) => {
      const target = targetOf(plan, family, route);
      return target.to === 'here' ? [{ do: 'goto', chain: chainOf(route, target.address) }] : undefined;
    }),
    rule('not by this node', ...drop('stray')),
  ];

const fromPods = (plan: EgressPlan): RuleSpec[] => [
  rule('an answer to who came in', isAnswer, ...decide('pass')),
  ...FAMILIES.flatMap((family) => classJumps(namedClasses('steered', plan.steered), family, (name) => name)),
];

const fromTunnel = (plan: EgressPlan): RuleSpec[] => [
  ...FAMILIES.map((family) =>
    rule(
      `${family}: an answer to a pod of this node`,
      isAnswer,
      isIn(family, 'daddr', SETS.selected),
      ...decide('pass'),
    ),
  ),
  ...FAMILIES.flatMap((family) => classJumps(namedClasses('translated', plan.translated), family, (name) => name)),
  rule('of nobody who leaves here', ...drop('stray')),
];

/** To pods of other nodes; those to pods of this one find their way. */
const fromOutside: readonly RuleSpec[] = [
  ...countAnswers,
  ...FAMILIES.map((family) =>
    rule(
      `${family}: an answer to a pod that left with an address of this node`,
      isAnswer,
      leftFromHere(family),
      isIn(family, 'daddr', SETS.remote),
      ...decide('answer'),
    ),
  ),
];

const toOwner: readonly RuleSpec[] = [
  rule('translated here before the rule', { match: 'ct-translated', of: 'saddr' }, ...drop('predates')),
  rule('to the owner', ...decide('steer')),
];

const byRule = ({ address, counters }: CountedRoute): RuleSpec[] => [
  rule(
    'translated to another before',
    { match: 'ct-translated', of: 'saddr' },
    { match: 'ct-address', direction: 'reply', address: 'daddr', op: '!=', value: address },
    ...drop('predates'),
  ),
  rule('translated here', { do: 'counter', name: counters.out }, ...decide('translate')),
];

export const planDecisions = (plan: EgressPlan, routes: readonly CountedRoute[]): ChainSpec[] => {
  const names = chainNames(routes);
  const find = countedBy(routes);
  const chainOf: ChainOf = (route, address) => names.get(find(route, address))!;
  return [
    {
      name: EGRESS_CHAINS.decide.name,
      base: baseOf(EGRESS_CHAINS.decide),
      rules: [
        rule('from pods', fromDevice(DEVICES.bridge), { do: 'goto', chain: FROM_PODS }),
        rule('from other nodes', fromDevice(DEVICES.egress), { do: 'goto', chain: FROM_TUNNEL }),
        rule('from elsewhere', { do: 'goto', chain: FROM_OUTSIDE }),
      ],
    },
    { name: FROM_PODS, rules: fromPods(plan) },
    { name: FROM_TUNNEL, rules: fromTunnel(plan) },
    { name: FROM_OUTSIDE, rules: fromOutside },
    { name: TO_OWNER, rules: toOwner },
    ...routes.map((route) => ({ name: names.get(route)!, rules: byRule(route) })),
    ...planAnswers(plan, routes),
    ...FAMILIES.flatMap((family) => [
      ...classChains(namedClasses('steered', plan.steered), family, {
        chainOf: (name) => name,
        rulesOf: steeringRules(plan, family, chainOf),
      }),
      ...classChains(namedClasses('translated', plan.translated), family, {
        chainOf: (name) => name,
        rulesOf: servingRules(plan, family, chainOf),
      }),
    ]),
  ];
};
