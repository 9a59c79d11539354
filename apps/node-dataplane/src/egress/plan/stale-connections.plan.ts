import { containsAddress, parseAddress, parsePrefix } from '@unbounded/ip';
import type { Connection } from '@unbounded/netlink';
import { ofFamily } from '../../kernel/address-sets.ts';
import { familyOf } from '../../kernel/nft-family.ts';
import { NOT_ROUTED } from './decisions.plan.ts';
import type { EgressPlan, PodClass } from './egress-plan.ts';
import { targetOf } from './route-rules.plan.ts';

/**
 * Connections that nftables drops because they predate what is in force now: connection tracking keeps the source that each had first. They
 * end in its table, so that whoever sends on gets a new one.
 */

const contains = (prefixes: readonly string[], text: string): boolean => {
  const address = parseAddress(text);
  return ofFamily(familyOf(text), prefixes).some((prefix) =>
    prefix.includes('/') ? containsAddress(parsePrefix(prefix), address) : prefix === text,
  );
};

/** The class of each pod by its addresses. */
const classesByAddress = (classes: readonly PodClass[]): Map<string, PodClass> =>
  new Map(
    classes.flatMap((own) => own.pods.flatMap(({ addresses }) => addresses.map((address) => [address, own] as const))),
  );

const classesOf = ({ steered, translated }: EgressPlan): Map<string, PodClass> =>
  new Map([...classesByAddress(translated), ...classesByAddress(steered)]);

/** Addresses of pods of which a packet may become another than before. */
export const changedSources = (before: EgressPlan | undefined, after: EgressPlan): string[] => {
  const [former, wanted] = [before ? classesOf(before) : new Map<string, PodClass>(), classesOf(after)];
  const addresses = new Set([...former.keys(), ...wanted.keys()]);
  const classes = new Set([...former.values(), ...wanted.values()]);
  const texts = new Map([...classes].map((own) => [own, JSON.stringify(own.routes)]));
  const textOf = (own: PodClass | undefined): string | undefined => own && texts.get(own);
  return [...addresses].filter((address) => textOf(former.get(address)) !== textOf(wanted.get(address))).sort();
};

/** Whether the connection of a pod has another source than new ones of it get. */
export const createStaleCheck = (plan: EgressPlan, formerlyOwned: ReadonlySet<string>) => {
  const classes = classesOf(plan);
  const inside = [...plan.cluster, ...NOT_ROUTED.ip, ...NOT_ROUTED.ip6];
  const apiServices = new Set(plan.apiServices);
  const owned = new Set([...plan.addresses.map(({ address }) => address), ...formerlyOwned]);
  return ({ original, reply }: Pick<Connection, 'original' | 'reply'>): boolean => {
    // Of a Service the answers come from where its packets go.
    if (contains(inside, reply.source) || apiServices.has(original.destination)) return false;
    const isOwn = reply.destination === original.source;
    const own = classes.get(original.source);
    const holds = (prefixes: readonly string[]): boolean => contains(prefixes, reply.source);
    const route = own?.routes.find(({ destinations, except }) => holds(destinations) && !holds(except));
    const target = route ? targetOf(plan, familyOf(original.source), route) : { to: 'anywhere' as const };
    switch (target.to) {
      case 'owner':
        return !isOwn;
      case 'here':
        return reply.destination !== target.address;
      case 'anywhere':
        return isOwn || owned.has(reply.destination);
      case 'nobody':
        return true;
    }
  };
};
