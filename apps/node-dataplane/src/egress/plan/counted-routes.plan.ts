import { FAMILIES } from '../../kernel/nft-family.ts';
import type { EgressPlan, PodRoute } from './egress-plan.ts';
import { targetOf } from './route-rules.plan.ts';

/** What is counted at the owner: packets of each rule, by the egress address that they get there. */

export interface CountedRoute {
  /** KIND/NAMESPACE/NAME/INDEX; of those beyond the limit `others`. */
  readonly rule: string;
  readonly address: string;
  /** Names of the counters of packets to the destination, and of the answers. */
  readonly counters: Readonly<Record<Direction, string>>;
}
type Direction = (typeof DIRECTIONS)[number];
export const DIRECTIONS = ['out', 'in'] as const;

/** Of the others none is counted by itself: a node with very many rules does not flood who reads its metrics. */
const MAX_COUNTED = 500;
const OTHERS = 'others';

/** The kernel takes names of 255 bytes. Of longer ones both ends are kept, so that names tell rules apart. */
const LONGEST = 240;
const withinLimit = (name: string): string =>
  name.length <= LONGEST ? name : `${name.slice(0, LONGEST / 2)}${name.slice(-LONGEST / 2)}`;

/** As nft writes and reads names. It says what is counted, so that an agent that starts knows the counters of the one before it. */
const counterName = (direction: Direction, rule: string, address: string): string =>
  withinLimit(`${direction}/${address}/${rule}`).replaceAll(/[^\w./-]/g, '_');

const counted = (rule: string, address: string): CountedRoute => ({
  rule,
  address,
  counters: { out: counterName('out', rule, address), in: counterName('in', rule, address) },
});

/** By rule and address, sorted: those that this node translates. */
const pairsOf = (plan: EgressPlan): { readonly rule: string; readonly address: string }[] => {
  const pairs = new Map<string, { readonly rule: string; readonly address: string }>();
  for (const { routes } of [...plan.steered, ...plan.translated])
    for (const route of routes)
      for (const family of FAMILIES) {
        const target = targetOf(plan, family, route);
        if (target.to !== 'here') continue;
        pairs.set(`${route.rule} ${target.address}`, { rule: route.rule, address: target.address });
      }
  return [...pairs.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, pair]) => pair);
};

export const countedRoutes = (plan: EgressPlan, limit = MAX_COUNTED): CountedRoute[] => {
  const pairs = pairsOf(plan);
  const others = [...new Set(pairs.slice(limit).map(({ address }) => address))];
  return [
    ...pairs.slice(0, limit).map(({ rule, address }) => counted(rule, address)),
    ...others.map((address) => counted(OTHERS, address)),
  ];
};

/** Finds what a packet of a route that gets this address is counted as. */
export const countedBy = (all: readonly CountedRoute[]) => {
  const byPair = new Map(all.map((one) => [`${one.rule} ${one.address}`, one]));
  return ({ rule }: Pick<PodRoute, 'rule'>, address: string): CountedRoute =>
    (byPair.get(`${rule} ${address}`) ?? byPair.get(`${OTHERS} ${address}`))!;
};
