import { containsPrefix, formatPrefix, parsePrefix, type Prefix } from '@unbounded/ip';
import { type Family, familyOf } from '../../kernel/nft-family.ts';
import type { EgressPlan, NextHop, PodRoute, RouteEgress } from './egress-plan.ts';

/**
 * The routes of a class of pods as a routing table. First match by destinations less exceptions becomes longest match: a packet's longest
 * prefix among all that the routes name lies in the same destinations and exceptions as the packet itself.
 */

/** To an owner by the tunnel; by the router of an address that this node owns; nowhere; or as if there was no rule. */
export type TableWay = { readonly owner: string } | NextHop | 'nowhere' | 'main';

export interface TableRoute {
  readonly prefix: string;
  readonly via: TableWay;
}

const EVERYTHING: Readonly<Record<Family, Prefix>> = { ip: parsePrefix('0.0.0.0/0'), ip6: parsePrefix('::/0') };

const prefixesOf = (family: Family, texts: readonly string[]): Prefix[] =>
  texts.filter((text) => familyOf(text) === family).map(parsePrefix);

interface ParsedRoute {
  readonly destinations: readonly Prefix[];
  readonly except: readonly Prefix[];
  readonly via: TableWay;
}

export const egressOf = (family: Family, { egress }: PodRoute): RouteEgress | undefined =>
  egress.find(({ address }) => familyOf(address) === family);

/** Where the table is: what the node owns itself leaves by the routers of its addresses, or by the main table. */
export type TablePlace = Pick<EgressPlan, 'node' | 'addresses'>;

const wayOf = (family: Family, route: PodRoute, { node, addresses }: TablePlace): TableWay => {
  const own = egressOf(family, route);
  if (!own) return route.unavailable === 'drop' ? 'nowhere' : 'main';
  if (own.owner !== node) return { owner: own.owner };
  return addresses.find(({ address }) => address === own.address)?.nextHop ?? 'main';
};

export const planRouteTable = (family: Family, routes: readonly PodRoute[], place: TablePlace): TableRoute[] => {
  const parsed = routes.map((route): ParsedRoute => ({
    destinations: prefixesOf(family, route.destinations),
    except: prefixesOf(family, route.except),
    via: wayOf(family, route, place),
  }));
  const holds = (outer: readonly Prefix[], inner: Prefix): boolean => outer.some((one) => containsPrefix(one, inner));
  const viaOf = (prefix: Prefix): TableWay =>
    parsed.find(({ destinations, except }) => holds(destinations, prefix) && !holds(except, prefix))?.via ?? 'main';
  const named = parsed.flatMap(({ destinations, except }) => [...destinations, ...except]);
  const unique = new Map([EVERYTHING[family], ...named].map((prefix) => [formatPrefix(prefix), prefix]));
  return [...unique].map(([prefix, parsedPrefix]) => ({ prefix, via: viaOf(parsedPrefix) }));
};
