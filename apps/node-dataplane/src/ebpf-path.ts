import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import type { Link, RouteSocket, RouteSpec } from '@unbounded/netlink';
import { DEVICES, type NodePlan } from '@unbounded/topology';
import type { DataPath } from './data-path.port.ts';
import { type ForwardingOptions, openForwardingMaps } from './kernel/forwarding-maps.ts';
import { plainWay } from './kernel/routes.ts';
import { removeNetlinkPath } from './netlink-path/route-objects.ts';

/** Routes lead into the anchor device, where the program finds the next hop; plain routing needs none. */
const routeSpecs = (plan: NodePlan, links: ReadonlyMap<string, Link>): RouteSpec[] => {
  const anchor = links.get(DEVICES.anchor);
  return plan.routes.flatMap(({ prefix, via, prefSrc, mtuBytes }): RouteSpec[] => {
    const common = {
      dst: prefix,
      table: plan.routeTable,
      protocol: ROUTE_PROTOCOL,
      mtu: mtuBytes,
      ...(prefSrc ? { prefSrc } : {}),
    };
    if (via === 'anchor') return anchor ? [{ ...common, link: anchor.index }] : [];
    if (typeof via === 'string' || !('gateways' in via)) return []; // of the netlink data path
    return [{ ...common, ...plainWay(via.gateways) }];
  });
};

export const openEbpfPath = (net: RouteSocket, options: ForwardingOptions): DataPath => {
  const forwarding = openForwardingMaps(options);
  return {
    guard: (_, links) => forwarding.guard(links),
    prepare: async (plan, links) => ({ groups: forwarding.prepare(plan, links), problems: [] }),
    apply: async () => forwarding.apply(),
    routes: routeSpecs,
    removeStale: async () => forwarding.removeStale(),
    removeLeftovers: () => removeNetlinkPath(net),
    detach: (device) => forwarding.detach(device),
    close: () => forwarding.close(),
  };
};
