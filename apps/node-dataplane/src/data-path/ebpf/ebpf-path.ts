import { ROUTE_PROTOCOL, TRANSIT_ROUTE_TABLE } from '@unbounded/config/ownership';
import type { Link, RouteSocket, RouteSpec } from '@unbounded/netlink';
import { DEVICES } from '../devices.ts';
import type { KernelPlan, RoutePlan } from '../kernel-plan.ts';
import { renderPlan } from '../render.ts';
import type { DataPath } from '../port.ts';
import { type ForwardingOptions, groupMapPin, openForwardingMaps } from './forwarding-maps.ts';
import { compareMaps } from './maps.diff.ts';
import type { OverlayMetrics } from './overlay-metrics.ts';
import { plainWay } from '../../kernel/routes.ts';
import { removeNetlinkPath } from '../netlink/route-objects.ts';

/** Routes lead into the anchor device, where the program finds the next hop; plain routing needs none. */
const routeSpecs = (plan: KernelPlan, links: ReadonlyMap<string, Link>): RouteSpec[] => {
  const anchor = links.get(DEVICES.anchor);
  const specIn =
    (table: number) =>
    ({ prefix, via, prefSrc, mtuBytes }: RoutePlan): RouteSpec[] => {
      const common = {
        dst: prefix,
        table,
        protocol: ROUTE_PROTOCOL,
        mtu: mtuBytes,
        ...(prefSrc ? { prefSrc } : {}),
      };
      if (via === 'anchor') return anchor ? [{ ...common, link: anchor.index }] : [];
      if (typeof via === 'string' || !('gateways' in via)) return []; // of the netlink data path
      return [{ ...common, ...plainWay(via.gateways) }];
    };
  return [
    ...plan.routes.flatMap(specIn(plan.routeTable)),
    ...(plan.transitRoutes ?? []).flatMap(specIn(TRANSIT_ROUTE_TABLE)),
  ];
};

export interface EbpfPathOptions extends ForwardingOptions {
  readonly overlayMetrics?: OverlayMetrics;
}

export const openEbpfPath = (net: RouteSocket, options: EbpfPathOptions): DataPath => {
  const { overlayMetrics, ...forwardingOptions } = options;
  const forwarding = openForwardingMaps(forwardingOptions);
  return {
    groups: { mapPin: groupMapPin(options.pinFolder) },
    render: (plan) => renderPlan('ebpf', plan),
    guard: (plan, links) => forwarding.guard(plan, links),
    prepare: async (plan, links) => ({ groups: forwarding.prepare(plan, links), problems: [] }),
    apply: async () => forwarding.apply(),
    routes: routeSpecs,
    async removeStale() {
      forwarding.removeStale();
      overlayMetrics?.observe(forwarding.counted());
    },
    removeLeftovers: () => removeNetlinkPath(net),
    async compare(now) {
      const tables = forwarding.tables();
      return {
        entries: tables ? compareMaps(tables.wanted, tables.present(), now) : [],
        groupNames: new Map(),
      };
    },
    detach: (device) => forwarding.detach(device),
    close: () => forwarding.close(),
  };
};
