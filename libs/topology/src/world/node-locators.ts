import { formatPrefix } from '@unbounded/ip';
import type { World } from './world.ts';

/** As many as an agent's maps of endpoints hold: nodes beyond that get no frames. */
const MOST_LOCATORS = 16_384;

/** Locators of all members, also of those without a link, by the node's name; of too many the first by name. */
export const nodeLocators = ({ pools, workers }: World): ReadonlyMap<string, string> => {
  const gateways = [...pools.values()].flatMap((pool) => pool.gateways);
  const found = [...workers, ...gateways].flatMap(({ name, locator }) =>
    locator ? [[name, formatPrefix(locator)] as const] : [],
  );
  return new Map(found.sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, MOST_LOCATORS));
};
