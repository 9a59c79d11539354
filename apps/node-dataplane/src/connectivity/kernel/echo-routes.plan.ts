import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { addressBits } from '@unbounded/ip';
import type { Link, RouteSpec } from '@unbounded/netlink';
import { DEVICES } from '../../data-path/devices.ts';
import { ownEchoAddresses } from '../../data-path/echo-addresses.ts';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';

/** Echoes that come back leave by the device of echoes, as packets for pods leave by theirs. */
export const planEchoRoutes = (plan: KernelPlan, links: ReadonlyMap<string, Pick<Link, 'index'>>): RouteSpec[] => {
  const device = links.get(DEVICES.echo);
  if (!device) return [];
  return [...ownEchoAddresses(plan.echoes)].map(([family, address]) => ({
    dst: `${address}/${addressBits(family)}`,
    table: plan.routeTable,
    protocol: ROUTE_PROTOCOL,
    link: device.index,
  }));
};
