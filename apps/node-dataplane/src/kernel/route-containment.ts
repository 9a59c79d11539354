import { containsPrefix, parsePrefix } from '@unbounded/ip';
import { ROUTE_TABLES, type RouteSpec } from '@unbounded/netlink';

/** What a route that the kernel refuses means for the others: a peer names its own address, and must not stop them by it. */

/** To plain neighbors (protocol None): their packets leave outside of the overlay anyway. */
export const isPlain = ({ link, gateway, nexthops, nexthopId }: RouteSpec): boolean =>
  link === undefined && nexthopId === undefined && (gateway !== undefined || nexthops !== undefined);

const tableOf = ({ table = ROUTE_TABLES.main }: RouteSpec): number => table;

const leadsOn = (route: RouteSpec): boolean => route.type === 'throw' || isPlain(route);

/**
 * Whether only its own destination lacks a route that cannot be had: nothing for the overlay leaves outside of it.
 * @param standing routes that are as wanted
 */
export const isContainedWithout = (route: RouteSpec, standing: readonly RouteSpec[]): boolean => {
  if (isPlain(route)) return true;
  if ((route.type ?? 'unicast') !== 'unicast' || route.gateway === undefined) return false; // whole blocks, and the anchor
  const destination = parsePrefix(route.dst);
  return standing.some(
    (other) =>
      tableOf(other) === tableOf(route) &&
      other.dst !== route.dst &&
      !leadsOn(other) &&
      containsPrefix(parsePrefix(other.dst), destination),
  );
};
