import { NEXTHOP_IDS, ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import type { IpFamily, Nexthop, NexthopMember, NexthopSpec, RouteSocket } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { deleteAll } from '../../kernel/delete-all.ts';
import type { GroupKernel, WeightedGroup } from '../../connectivity/health/group-kernel.port.ts';

/**
 * Next-hop groups of the kernel's routes. Resilient: a member that leaves takes only its own flows along, and one that
 * comes gets those that are idle. Where it comes to a single other one, it gets its share at once: for a group of one
 * member the kernel selects no bucket, so that all of them count as idle.
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

export const isOurGroup = ({ id, protocol, group }: Nexthop): boolean =>
  group !== undefined && protocol === ROUTE_PROTOCOL && id >= NEXTHOP_IDS.first && id <= NEXTHOP_IDS.last;

/** The kernel takes far more; so many gateways behind one site would be another problem. */
const LARGEST = 256;

const carriersOf = ({ members, family }: WeightedGroup): NexthopMember[] => {
  const carriers = members.flatMap(({ record, weight }) =>
    typeof record === 'number' && weight > 0 ? [{ id: record, weight }] : [],
  );
  return carriers.length > 0 ? carriers : [{ id: nowhere(family).id, weight: 1 }];
};

const specOf = (group: WeightedGroup): NexthopSpec => ({
  id: group.index,
  protocol: ROUTE_PROTOCOL,
  group: carriersOf(group),
  resilient: { buckets: BUCKETS, idleTimer: IDLE_S, unbalancedTimer: 0 },
});

const shown = (members: readonly NexthopMember[]): string =>
  members
    .map(({ id, weight = 1 }) => `${id}*${weight}`)
    .sort()
    .join();

export const createNexthopGroups = (net: RouteSocket): GroupKernel => {
  const list = async (): Promise<Nexthop[]> => (await net.nexthops.list()).filter(isOurGroup);
  /** Of families that have groups: a kernel may have no IPv6. */
  const ensureNowhere = async (families: ReadonlySet<IpFamily>): Promise<void> => {
    if (families.size === 0) return;
    const present = new Set((await net.nexthops.list()).map(({ id }) => id));
    for (const hop of [...families].map(nowhere)) if (!present.has(hop.id)) await net.nexthops.create(hop);
  };
  return {
    largestGroup: LARGEST,
    async ensure(groups) {
      await ensureNowhere(new Set(groups().map(({ family }) => family)));
      const present = new Map((await list()).map(({ id, group }) => [id, shown(group ?? [])]));
      const changed = groups().filter((group) => present.get(group.index) !== shown(carriersOf(group)));
      const results = await net.nexthops.apply(
        changed.map((group) => ({ op: 'replace' as const, value: specOf(group) })),
      );
      return results.flatMap((result, at): Problem[] =>
        result.ok
          ? []
          : [{ reason: 'RouteFailed', message: `next-hop group ${changed[at]!.index}: ${result.error.message}` }],
      );
    },
    write: (group) => void net.nexthops.replace(specOf(group)).catch(() => undefined),
    async keepOnly(indexes) {
      const stale = (await list()).filter(({ id }) => !indexes.has(id));
      await deleteAll(net.nexthops, stale);
    },
    close: async () => net.close(),
  };
};
