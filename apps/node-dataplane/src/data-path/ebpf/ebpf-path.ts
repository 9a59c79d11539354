import { ROUTE_PROTOCOL, TRANSIT_ROUTE_TABLE } from '@unbounded/config/ownership';
import type { Link, RouteSocket, RouteSpec } from '@unbounded/netlink';
import type { Metrics } from '@unbounded/telemetry';
import { watchMaps } from '../../bpf/map-metrics.ts';
import { DEVICES } from '../devices.ts';
import type { KernelPlan, RoutePlan } from '../kernel-plan.ts';
import { renderPlan } from '../render.ts';
import type { DataPath } from '../port.ts';
import { type ForwardingMaps, type ForwardingOptions, groupMapPin, openForwardingMaps } from './forwarding-maps.ts';
import { compareMaps } from './maps.diff.ts';
import { createOverlayMetrics } from './overlay-metrics.ts';
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
  /** Of what the programs count and of how full their maps are; absent: nobody asks. */
  readonly metrics?: Metrics;
}

/** Read whenever somebody asks for the metrics. @returns ends it */
const watchForwarding = (metrics: Metrics, forwarding: ForwardingMaps): Disposable => {
  const overlay = createOverlayMetrics(metrics);
  using watches = new DisposableStack();
  watches.use(watchMaps(metrics, forwarding.maps));
  watches.use(metrics.onRender(() => overlay.observe(forwarding.counted())));
  return watches.move();
};

export const openEbpfPath = (net: RouteSocket, options: EbpfPathOptions): DataPath => {
  const { metrics, ...forwardingOptions } = options;
  const forwarding = openForwardingMaps(forwardingOptions);
  const watch = metrics && watchForwarding(metrics, forwarding);
  return {
    groups: { mapPin: groupMapPin(options.pinFolder) },
    render: (plan) => renderPlan('ebpf', plan),
    guard: (plan, links) => forwarding.guard(plan, links),
    prepare: async (plan, links) => ({ groups: forwarding.prepare(plan, links), problems: [] }),
    apply: async () => forwarding.apply(),
    routes: routeSpecs,
    removeStale: async () => forwarding.removeStale(),
    removeLeftovers: () => removeNetlinkPath(net),
    async compare(now) {
      const tables = forwarding.tables();
      return {
        entries: tables ? compareMaps(tables.wanted, tables.present(), now) : [],
        groupNames: new Map(),
      };
    },
    detach: (device) => forwarding.detach(device),
    close() {
      watch?.[Symbol.dispose]();
      forwarding.close();
    },
  };
};
