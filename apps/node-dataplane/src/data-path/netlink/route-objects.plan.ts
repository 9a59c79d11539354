import { innerMac } from '@unbounded/bpf-maps';
import { NEXTHOP_IDS, ROUTE_PROTOCOL, TRANSIT_ROUTE_TABLE } from '@unbounded/config/ownership';
import type { Encap, IpFamily, NeighbourSpec, NexthopSpec, RouteSpec } from '@unbounded/netlink';
import type { KernelGroup, KernelHop, KernelPlan, RoutePlan } from '../kernel-plan.ts';
import { TUNNEL_VNI } from '../devices.ts';
import type { GroupIndexes } from '../group-indexes.ts';
import { sourceTowards } from '../../connectivity/kernel/own-addresses.ts';
import { plainWay } from '../../kernel/routes.ts';

/**
 * The netlink data path as kernel objects: routes in a table of our own, next hops and groups of them that routes point
 * at, and neighbours that need no asking. A failover is then one write of a group.
 */

interface PlannedGroup {
  readonly name: string;
  readonly id: number;
  readonly family: IpFamily;
  readonly site?: string;
  readonly members: readonly { readonly node: string; readonly tier: number; readonly nexthopId: number }[];
}

export interface RouteObjects {
  readonly nexthops: readonly NexthopSpec[];
  readonly groups: readonly PlannedGroup[];
  readonly routes: readonly RouteSpec[];
  readonly neighbours: readonly NeighbourSpec[];
  /** Names of everything that has a number. */
  readonly names: ReadonlySet<string>;
}

const familyOf = (text: string): IpFamily => (text.includes(':') ? 6 : 4);

/** What a route or next hop says of the way: the device, and for tunnels with Ethernet headers who is behind it. */
interface Way {
  readonly link: number;
  readonly gateway?: string;
  readonly onlink?: boolean;
  readonly encap?: Encap;
}

type Hop = Pick<KernelHop, 'device' | 'remoteIp' | 'gatewayIp' | 'peerIp'>;

/** What the way of a hop depends on: indexes of the devices, and from which address packets go. */
interface Here {
  readonly plan: KernelPlan;
  readonly links: ReadonlyMap<string, number>;
}

/** A device that serves one peer has its far end itself; vxlan0 serves all, and each packet brings it along. */
const wayOf = ({ device, remoteIp, gatewayIp }: Hop, { plan, links }: Here): Way | undefined => {
  const link = links.get(device);
  if (link === undefined) return undefined;
  const src = remoteIp === undefined ? undefined : sourceTowards(plan, remoteIp);
  return {
    link,
    ...(gatewayIp === undefined ? {} : { gateway: gatewayIp, onlink: true }),
    ...(device === 'vxlan0' && remoteIp !== undefined
      ? {
          encap: {
            type: familyOf(remoteIp) === 4 ? 'ip' : 'ip6',
            id: TUNNEL_VNI,
            dst: remoteIp,
            ...(src === undefined ? {} : { src }),
          } as const,
        }
      : {}),
  };
};

/** MAC of the far end, as it derives it from its own address, whatever address leads there: nobody asks on a tunnel. */
const neighbourOf = (
  { device, remoteIp, gatewayIp, peerIp = remoteIp }: Hop,
  links: ReadonlyMap<string, number>,
): NeighbourSpec[] => {
  const link = links.get(device);
  if (link === undefined || gatewayIp === undefined || peerIp === undefined) return [];
  const mac = innerMac(peerIp);
  return [{ family: familyOf(gatewayIp), link, address: gatewayIp, mac, state: 'permanent' }];
};

/**
 * The preferred source that routes by a next hop have. An IPv6 next hop is of one source alone: the kernel keeps a route that it has
 * looked up in the next hop, for all routes that lead by it (rt6_get_pcpu_route), and whichever was first would give all its source.
 */
type Source = string | undefined;

const sourceOf = ({ prefix, prefSrc }: RoutePlan): Source => (familyOf(prefix) === 6 ? prefSrc : undefined);

const hopName = (family: IpFamily, { device, remoteIp, gatewayIp }: Hop): string =>
  ['hop', family, device, remoteIp ?? '', gatewayIp ?? ''].join(' ');

/**
 * Names of groups and next hops by source. Whichever source comes first has the name without one: where all routes get another source,
 * groups and next hops stay as they are, and flows at their gateways.
 */
const createNames = () => {
  const firsts = new Map<string, Source>();
  return (name: string, source: Source): string => {
    if (!firsts.has(name)) firsts.set(name, source);
    return firsts.get(name) === source ? name : `${name} from ${source ?? 'any source'}`;
  };
};

/** Of a group's routes, in their order; each has a group of its own. One without routes says which sites it reaches. */
const sourcesOf = (routes: readonly RoutePlan[], group: string): Source[] => {
  const own = routes.filter(({ via }) => typeof via === 'object' && 'group' in via && via.group === group);
  return own.length === 0 ? [undefined] : [...new Set(own.map(sourceOf))];
};

/** By group and source. */
type GroupIds = ReadonlyMap<string, ReadonlyMap<Source, number>>;

const routeSpec = (route: RoutePlan, here: Here & { readonly table: number }, groupIds: GroupIds): RouteSpec[] => {
  const { prefix, via, prefSrc, mtuBytes } = route;
  const common = { dst: prefix, table: here.table, protocol: ROUTE_PROTOCOL };
  const settings = { ...common, mtu: mtuBytes, ...(prefSrc === undefined ? {} : { prefSrc }) };
  if (via === 'anchor') return [];
  if (via === 'unreachable') return [{ ...common, type: 'unreachable' }];
  if (via === 'main') return [{ ...common, type: 'throw' }];
  if ('gateways' in via) return via.gateways.length === 0 ? [] : [{ ...settings, ...plainWay(via.gateways) }];
  if ('group' in via) {
    const id = groupIds.get(via.group)?.get(sourceOf(route));
    return id === undefined ? [{ ...common, type: 'unreachable' }] : [{ ...settings, nexthopId: id }];
  }
  const way = wayOf(via, here);
  return way ? [{ ...settings, ...way }] : [{ ...common, type: 'unreachable' }];
};

/**
 * @param links indexes of the devices that are there
 * @param indexes numbers that next hops and groups keep for as long as they live, also over a restart
 */
export const planRouteObjects = (
  plan: KernelPlan,
  links: ReadonlyMap<string, number>,
  indexes: GroupIndexes,
): RouteObjects => {
  const names = new Set<string>();
  const idOf = (name: string): number => {
    names.add(name);
    return NEXTHOP_IDS.first + indexes.indexOf(name);
  };
  const nexthops = new Map<number, NexthopSpec>();
  const neighbours = new Map<string, NeighbourSpec>();
  const meet = (hop: Hop): void => {
    for (const neighbour of neighbourOf(hop, links))
      neighbours.set(`${neighbour.link} ${neighbour.address}`, neighbour);
  };
  const nameOf = createNames();
  const planGroup = ({ name: shared, family, site, members }: KernelGroup, source: Source): PlannedGroup => {
    const planned = members.flatMap((hop) => {
      const way = wayOf(hop, { plan, links });
      if (!way) return [];
      const id = idOf(nameOf(hopName(family, hop), source));
      nexthops.set(id, { id, protocol: ROUTE_PROTOCOL, family, ...way });
      meet(hop);
      return [{ node: hop.node, tier: hop.tier, nexthopId: id }];
    });
    const name = nameOf(shared, source);
    return { name, id: idOf(`group ${name}`), family, ...(site === undefined ? {} : { site }), members: planned };
  };
  const { transitRoutes = [] } = plan;
  const routed = [...plan.routes, ...transitRoutes];
  const usable = new Map<string, Map<Source, number>>();
  const groups = plan.groups.flatMap((group) =>
    sourcesOf(routed, group.name).flatMap((source) => {
      const planned = planGroup(group, source);
      if (planned.members.length === 0) return [];
      usable.set(group.name, new Map([...(usable.get(group.name) ?? []), [source, planned.id]]));
      return [planned];
    }),
  );
  for (const { via } of routed) if (typeof via === 'object' && 'device' in via) meet(via);
  return {
    nexthops: [...nexthops.values()],
    groups,
    routes: [
      ...plan.routes.flatMap((route) => routeSpec(route, { plan, links, table: plan.routeTable }, usable)),
      ...transitRoutes.flatMap((route) => routeSpec(route, { plan, links, table: TRANSIT_ROUTE_TABLE }, usable)),
    ],
    neighbours: [...neighbours.values()],
    names,
  };
};
