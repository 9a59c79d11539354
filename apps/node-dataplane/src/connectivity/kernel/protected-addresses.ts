import { parseAddress, specialRangeOf } from '@unbounded/ip';
import type { Route, RouteSocket } from '@unbounded/netlink';
import type { ProtectedAddress } from '@unbounded/topology';

/** Addresses by which the node itself is kept reachable: of the API server, and of its routers. */

const DEFAULTS = new Set(['0.0.0.0/0', '::/0']);
const MAIN_TABLE = 254;

const gatewaysOf = ({ gateway, nexthops = [] }: Route): string[] =>
  [gateway, ...nexthops.map((hop) => hop.gateway)].flatMap((address) => address ?? []);

/** Link-local ones need no protection: no route is made for them. */
const isRoutable = (address: string): boolean => specialRangeOf(parseAddress(address)) === undefined;

export const findDefaultGateways = async (net: RouteSocket): Promise<ProtectedAddress[]> => {
  const routes = (await net.routes.list({ table: MAIN_TABLE })).filter(({ dst }) => DEFAULTS.has(dst));
  return [...new Set(routes.flatMap(gatewaysOf))]
    .filter(isRoutable)
    .sort()
    .map((address) => ({ address, role: 'the default gateway' }));
};
