import { NEXTHOP_IDS, ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import type { Neighbour, NeighbourSpec, Nexthop, NexthopSpec, RouteSocket } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { deleteAll } from '../../kernel/delete-all.ts';

/** Brings next hops and neighbours of the netlink data path into the kernel; groups belong to the thread that probes. */

const isOurs = ({ id, protocol }: Nexthop): boolean =>
  protocol === ROUTE_PROTOCOL && id >= NEXTHOP_IDS.first && id <= NEXTHOP_IDS.last;

/** The fields that we set, in one order. */
export const nexthopText = ({ id, link, gateway, encap }: NexthopSpec): string =>
  JSON.stringify([id, link, gateway, encap]);

const failures = (what: string, results: readonly { ok: boolean; error?: Error }[]): Problem[] =>
  results.flatMap(({ ok, error }) => (ok ? [] : [{ reason: 'RouteFailed', message: `${what}: ${error?.message}` }]));

export const ensureNexthops = async (net: RouteSocket, wanted: readonly NexthopSpec[]): Promise<Problem[]> => {
  const present = new Set((await net.nexthops.list()).filter(isOurs).map(nexthopText));
  const changed = wanted.filter((hop) => !present.has(nexthopText(hop)));
  const results = await net.nexthops.apply(changed.map((value) => ({ op: 'replace' as const, value })));
  return failures('next hop', results);
};

/** Next hops that are no more wanted. A device that went took its own along already. */
export const removeStaleNexthops = async (net: RouteSocket, wanted: ReadonlySet<number>): Promise<void> => {
  const stale = (await net.nexthops.list()).filter(
    (hop) => isOurs(hop) && hop.group === undefined && !hop.blackhole && !wanted.has(hop.id),
  );
  await deleteAll(net.nexthops, stale);
};

const isSame = (wanted: NeighbourSpec, seen: Neighbour): boolean =>
  seen.mac === wanted.mac && seen.state === 'permanent' && seen.protocol === wanted.protocol;

/** As {@link innerMac} makes them: what agents wrote before their entries had a protocol. */
const OUR_MAC = /^02:.*:ff$/;

/** Whether somebody else set the entry: what the kernel learned or made by itself is nobody's. */
const isForeign = ({ state, protocol, mac = '' }: Neighbour): boolean =>
  state === 'permanent' && protocol !== ROUTE_PROTOCOL && !(protocol === undefined && OUR_MAC.test(mac));

const foreignNeighbour = ({ address, mac, link }: NeighbourSpec, seen: Neighbour): Problem => ({
  reason: 'ForeignNeighbor',
  message: `a permanent neighbor entry for ${address} on link ${link} (${seen.mac ?? 'no MAC'}) exists that is not ours, and is kept: ours (${mac}) is not installed, and packets to that peer may be lost; remove it with "ip neigh del"`,
});

export const ensureNeighbours = async (net: RouteSocket, wanted: readonly NeighbourSpec[]): Promise<Problem[]> => {
  const keyOf = ({ family, link, address }: NeighbourSpec): string => `${family} ${link} ${address}`;
  const present = new Map((await net.neighbours.list()).map((seen) => [keyOf(seen), seen]));
  const entries = wanted.map((entry) => ({ ...entry, protocol: ROUTE_PROTOCOL }));
  const missing = entries.filter((entry) => {
    const seen = present.get(keyOf(entry));
    return !seen || !isSame(entry, seen);
  });
  const blockedBy = (entry: NeighbourSpec): Neighbour | undefined => {
    const seen = present.get(keyOf(entry));
    return seen && isForeign(seen) ? seen : undefined;
  };
  const free = missing.filter((entry) => blockedBy(entry) === undefined);
  const results = await net.neighbours.apply(
    free.map((value) => ({ op: present.has(keyOf(value)) ? ('replace' as const) : ('create' as const), value })),
  );
  const foreign = missing.flatMap((entry) => {
    const seen = blockedBy(entry);
    return seen ? [foreignNeighbour(entry, seen)] : [];
  });
  // The kernel may have begun to resolve an address since we looked: the next pass replaces that entry.
  return [
    ...foreign,
    ...failures(
      'neighbor',
      results.filter((result) => result.ok || result.error.code !== 'EEXIST'),
    ),
  ];
};

/** Everything of the netlink data path but its rule: nobody's packets go by it any more. */
export const removeNetlinkPath = async (net: RouteSocket): Promise<void> => {
  const ours = (await net.nexthops.list()).filter(isOurs);
  const groupsFirst = ours.toSorted((a, b) => Number(a.group === undefined) - Number(b.group === undefined));
  await deleteAll(net.nexthops, groupsFirst);
};
