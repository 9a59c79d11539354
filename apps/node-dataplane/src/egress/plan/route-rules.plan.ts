import type { ChainSpec, Expression, RuleSpec, SetSpec } from '@unbounded/nftables';
import { isIn, ofFamily, setName, singleSet } from '../../kernel/address-sets.ts';
import { ADDRESS_TYPE, type Family } from '../../kernel/nft-family.ts';
import type { EgressPlan, PodClass, PodRoute } from './egress-plan.ts';
import { rule } from './names.ts';
import { egressOf } from './route-table.plan.ts';

/** The routes of a class of pods as rules: the first one that matches a packet counts. */

/** Where a route leads in one family. */
export type RouteTarget =
  | { readonly to: 'nobody' | 'anywhere' | 'owner' }
  | { readonly to: 'here'; readonly address: string };

const known = new WeakMap<EgressPlan['addresses'], ReadonlySet<string>>();
/** A plan asks it of each of its routes, and can have a thousand addresses. */
const textsOf = (addresses: EgressPlan['addresses']): ReadonlySet<string> => {
  const found = known.get(addresses) ?? new Set(addresses.map(({ address }) => address));
  known.set(addresses, found);
  return found;
};

export const targetOf = (
  { node, addresses }: Pick<EgressPlan, 'node' | 'addresses'>,
  family: Family,
  route: PodRoute,
): RouteTarget => {
  const egress = egressOf(family, route);
  if (!egress) return { to: route.unavailable === 'drop' ? 'nobody' : 'anywhere' };
  if (egress.owner !== node) return { to: 'owner' };
  // Named as its owner before it was told so, or after it gave the address up.
  return textsOf(addresses).has(egress.address) ? { to: 'here', address: egress.address } : { to: 'nobody' };
};

export const podAddresses = (classes: readonly PodClass[]): string[] =>
  classes.flatMap(({ pods }) => pods.flatMap(({ addresses }) => addresses));

/** Where the pods of a class are, and what they are called in names of sets and chains. */
export interface NamedClass extends PodClass {
  readonly name: string;
}

export const namedClasses = (kind: 'steered' | 'translated', classes: readonly PodClass[]): NamedClass[] =>
  classes.map((own, index) => ({ ...own, name: `${kind}_${index}` }));

const exceptSet = ({ name }: NamedClass, index: number): string => `${name}_except_${index}`;

/** Of pods, and of exceptions. */
export const classSets = (own: NamedClass, family: Family): SetSpec[] => {
  const type = ADDRESS_TYPE[family];
  const sets = own.routes.map(({ except }, index) => ({
    name: setName(exceptSet(own, index), family),
    type,
    elements: ofFamily(family, except),
  }));
  return [singleSet(own.name, family, podAddresses([own])), ...sets.filter(({ elements }) => elements.length)];
};

/**
 * @param actionOf what is done with a packet of the route; undefined: it goes on to the next one
 * @param end where the packet has the destination of the route; an answer has it as its source
 */
export const routeRules = (
  own: NamedClass,
  family: Family,
  actionOf: (route: PodRoute) => readonly Expression[] | undefined,
  end: 'saddr' | 'daddr' = 'daddr',
): RuleSpec[] =>
  own.routes.flatMap((route, index) => {
    const action = actionOf(route);
    if (!action) return [];
    const hasExceptions = ofFamily(family, route.except).length > 0;
    return ofFamily(family, route.destinations).map((destination) =>
      rule(
        route.rule.slice(0, 100),
        { match: 'payload', field: `${family}.${end}`, op: '==', value: destination },
        ...(hasExceptions ? [isIn(family, end, exceptSet(own, index), '!=')] : []),
        ...action,
      ),
    );
  });

/**
 * Leads the packets of each class to its chain.
 * @param end where a packet has the address of the pod
 */
export const classJumps = (
  classes: readonly NamedClass[],
  family: Family,
  chainOf: (name: string) => string,
  end: 'saddr' | 'daddr' = 'saddr',
): RuleSpec[] =>
  classes.map((own) =>
    rule(`${family}: pods of ${own.name}`, isIn(family, end, own.name), {
      do: 'goto',
      chain: setName(chainOf(own.name), family),
    }),
  );

export const classChains = (
  classes: readonly NamedClass[],
  family: Family,
  {
    chainOf,
    rulesOf,
  }: { readonly chainOf: (name: string) => string; readonly rulesOf: (own: NamedClass) => RuleSpec[] },
): ChainSpec[] => classes.map((own) => ({ name: setName(chainOf(own.name), family), rules: rulesOf(own) }));
