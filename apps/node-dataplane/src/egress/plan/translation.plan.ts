import type { ChainSpec } from '@unbounded/nftables';
import { baseOf, EGRESS_CHAINS } from '../../kernel/base-chains.ts';
import { FAMILIES, type Family } from '../../kernel/nft-family.ts';
import type { EgressPlan } from './egress-plan.ts';
import { drop, isMarked, rule } from './names.ts';
import { classChains, classJumps, type NamedClass, namedClasses, routeRules, targetOf } from './route-rules.plan.ts';

/**
 * The first packet of a connection that leaves here gets its egress address; connection tracking does so with the others. Source ports
 * stay where they are free: no random ones, so that another owner may take over a connection.
 */

const chainOf = (name: string): string => `${name}_translation`;

export const planTranslation = (plan: EgressPlan): ChainSpec[] => {
  const classes = [...namedClasses('steered', plan.steered), ...namedClasses('translated', plan.translated)];
  const rulesOf = (family: Family) => (own: NamedClass) =>
    routeRules(own, family, (route) => {
      const target = targetOf(plan, family, route);
      return target.to === 'here' ? [{ do: 'snat', to: target.address }] : drop('wrongSource');
    });
  return [
    {
      name: EGRESS_CHAINS.translate.name,
      base: baseOf(EGRESS_CHAINS.translate),
      rules: [
        ...FAMILIES.map((family) =>
          rule(
            `${family}: to the owner with the address of the pod, whoever masquerades behind this`,
            isMarked('steer'),
            { do: 'snat', to: { field: `${family}.saddr` } },
          ),
        ),
        rule('not with an egress address', isMarked('translate', '!='), { do: 'return' }),
        ...FAMILIES.flatMap((family) => classJumps(classes, family, chainOf)),
      ],
    },
    ...FAMILIES.flatMap((family) => classChains(classes, family, { chainOf, rulesOf: rulesOf(family) })),
  ];
};
