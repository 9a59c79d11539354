import type { ChainSpec, RuleSpec } from '@unbounded/nftables';
import { setName } from '../../kernel/address-sets.ts';
import { FAMILIES, type Family } from '../../kernel/nft-family.ts';
import { countedBy, type CountedRoute } from './counted-routes.plan.ts';
import type { EgressPlan } from './egress-plan.ts';
import { isAnswer, leftFromHere, rule } from './names.ts';
import { classChains, classJumps, type NamedClass, namedClasses, routeRules, targetOf } from './route-rules.plan.ts';

/** Answers to pods that left with an address of this node, counted by the rule that their connection left by. Nothing else becomes of them here. */

const ANSWERS = 'answers';
const chainOf = (name: string): string => `${name}_${ANSWERS}`;

/** Of these some packets are translated here. */
const servedClasses = (plan: EgressPlan, family: Family): NamedClass[] =>
  [...namedClasses('steered', plan.steered), ...namedClasses('translated', plan.translated)].filter(({ routes }) =>
    routes.some((route) => targetOf(plan, family, route).to === 'here'),
  );

/** Before it is decided about the answer. */
export const countAnswers: readonly RuleSpec[] = FAMILIES.map((family) =>
  rule(`${family}: an answer, to be counted`, isAnswer, leftFromHere(family), {
    do: 'jump',
    chain: setName(ANSWERS, family),
  }),
);

export const planAnswers = (plan: EgressPlan, routes: readonly CountedRoute[]): ChainSpec[] => {
  const find = countedBy(routes);
  return FAMILIES.flatMap((family) => {
    const classes = servedClasses(plan, family);
    const rulesOf = (own: NamedClass): RuleSpec[] =>
      routeRules(
        own,
        family,
        (route) => {
          const target = targetOf(plan, family, route);
          if (target.to !== 'here') return undefined;
          return [{ do: 'counter', name: find(route, target.address).counters.in }, { do: 'return' }];
        },
        'saddr',
      );
    return [
      { name: setName(ANSWERS, family), rules: classJumps(classes, family, chainOf, 'daddr') },
      ...classChains(classes, family, { chainOf, rulesOf }),
    ];
  });
};
