import { type EgressRoute, MAX_EGRESS_SLICE_ROUTES } from '@unbounded/crds';

import { compareTexts } from '../order.ts';
import { dropEverything, type KeyedRoute } from '../pods/routes.plan.ts';

/** The routes of one slice, each once. Pods are placed so that these fit; if they did not, a route that says so would drop the rest. */
export interface RouteTable {
  readonly routes: readonly EgressRoute[];
  /** Places in `routes`, in the given order. A pod of whose routes some do not fit is dropped where these would count. */
  readonly placesOf: (routes: readonly Pick<KeyedRoute, 'key'>[]) => readonly number[];
}

/** Sorted, so that the same routes make the same table. */
export const routeTable = (
  all: Iterable<Pick<KeyedRoute, 'key' | 'route'>>,
  limit = MAX_EGRESS_SLICE_ROUTES,
): RouteTable => {
  const unique = new Map([...all].map((keyed) => [keyed.key, keyed]));
  const isFull = unique.size > limit;
  const sorted = [...unique.values()].toSorted((a, b) => compareTexts(a.key, b.key));
  const fitting = isFull ? [dropEverything(), ...sorted.slice(0, limit - 1)] : sorted;
  const places = new Map(fitting.map(({ key }, place) => [key, place]));
  return {
    routes: fitting.map(({ route }) => route),
    placesOf: (routes) => {
      const found: number[] = [];
      for (const { key } of routes) {
        const place = places.get(key);
        if (place === undefined) return [...found, 0]; // the route that drops
        found.push(place);
      }
      return found;
    },
  };
};
