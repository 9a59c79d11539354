import { NEXTHOP_IDS, ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import {
  isAbsent,
  type IpFamily,
  type Nexthop,
  type NexthopMember,
  type NexthopSpec,
  type RouteSocket,
} from '@unbounded/netlink';

/**
 * Next-hop groups of the kernel's routes. Resilient: a member that leaves takes only its own flows along, and one that
 * comes gets those that are idle.
 */

const BUCKETS = 128;
/** Seconds: a flow that was silent for this long may move to a member that is new. */
const IDLE_S = 10;

/** What a group without any usable member leads into; one for each family, at the end of our range. */
const nowhere = (family: IpFamily): NexthopSpec => ({
  id: NEXTHOP_IDS.last - (family === 4 ? 0 : 1),
  protocol: ROUTE_PROTOCOL,
  family,
  blackhole: true,
});

export interface WeightedGroup {
  readonly id: number;
  readonly family: IpFamily;
  readonly members: readonly NexthopMember[];
}

const isOurGroup = ({ id, protocol, group }: Nexthop): boolean =>
  group !== undefined && protocol === ROUTE_PROTOCOL && id >= NEXTHOP_IDS.first && id <= NEXTHOP_IDS.last;

const carriersOf = ({ members, family }: WeightedGroup): NexthopMember[] => {
  const carriers = members.filter(({ weight = 1 }) => weight > 0);
  return carriers.length > 0 ? carriers : [{ id: nowhere(family).id, weight: 1 }];
};

const specOf = (group: WeightedGroup): NexthopSpec => ({
  id: group.id,
  protocol: ROUTE_PROTOCOL,
  group: carriersOf(group),
  resilient: { buckets: BUCKETS, idleTimer: IDLE_S, unbalancedTimer: 0 },
});

const shown = (members: readonly NexthopMember[]): string =>
  members
    .map(({ id, weight = 1 }) => `${id}*${weight}`)
    .sort()
    .join();

export interface NexthopGroups {
  /** Adds and corrects; what is right is not written again. */
  ensure(groups: readonly WeightedGroup[]): Promise<void>;
  write(group: WeightedGroup): Promise<void>;
  keepOnly(ids: ReadonlySet<number>): Promise<void>;
}

export const createNexthopGroups = (net: RouteSocket): NexthopGroups => {
  const list = async (): Promise<Nexthop[]> => (await net.nexthops.list()).filter(isOurGroup);
  return {
    async ensure(groups) {
      for (const family of [4, 6] as const) await net.nexthops.replace(nowhere(family));
      const present = new Map((await list()).map(({ id, group }) => [id, shown(group ?? [])]));
      for (const group of groups)
        if (present.get(group.id) !== shown(carriersOf(group))) await net.nexthops.replace(specOf(group));
    },
    write: (group) => net.nexthops.replace(specOf(group)),
    async keepOnly(ids) {
      for (const group of (await list()).filter(({ id }) => !ids.has(id))) {
        await net.nexthops.delete(group).catch((error: unknown) => {
          if (!isAbsent(error)) throw error;
        });
      }
    },
  };
};
