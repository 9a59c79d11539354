import { resolveProtocol } from './protocol.ts';
import { peeringsOf, poolsOfSite } from '../world/reach.ts';
import { type Place, scopesOf } from './scopes.ts';
import { canBeCalledFrom, canMeet, type Meeting, meetingOf } from './underlay.ts';
import type { World } from '../world/world.ts';

/**
 * Where nodes meet at a relay because none of them can be called: only where nothing else joins them, so that a relay never
 * takes over what another way carries. Decided by the objects alone; gateways that come and go change nothing.
 */

/** Pools by name, with the same number for those that lead to each other without a relay. */
const components = new WeakMap<World, ReadonlyMap<string, number>>();

const componentsOf = (world: World): ReadonlyMap<string, number> => {
  const known = components.get(world);
  if (known) return known;
  const meetings = new Map<string, Meeting>(
    [...world.pools].map(([name, { gateways }]) => [name, meetingOf(world, gateways)]),
  );
  const found = new Map<string, number>();
  for (const [start, number] of [...meetings.keys()].sort().map((name, index) => [name, index] as const)) {
    const waiting = found.has(start) ? [] : [start];
    for (const name of waiting) {
      found.set(name, number);
      for (const other of peeringsOf(world, name).flatMap(({ members }) => [...members])) {
        const there = meetings.get(other);
        if (!there || found.has(other) || !canMeet(world, meetings.get(name)!, there)) continue;
        found.set(other, number);
        waiting.push(other);
      }
    }
  }
  components.set(world, found);
  return found;
};

/** The same number for pools that lead to each other without a relay; undefined: there is no such pool. */
export const componentOf = (world: World, pool: string): number | undefined => componentsOf(world).get(pool);

/** A relay carries WireGuard alone. */
const isWireGuard = (world: World, a: Place, b: Place): boolean =>
  resolveProtocol({
    name: '',
    sameSite: false,
    external: true,
    family: 4,
    inner: new Set(),
    scopes: scopesOf(world, a, b),
    abilities: [undefined, undefined],
  }).protocol === 'WireGuard';

const isServed = (world: World, site: string): boolean =>
  poolsOfSite(world, site).some((pool) => world.pools.get(pool)!.gateways.some((g) => canBeCalledFrom(world, g, site)));

/** Whether a site's nodes and a gateway that is assigned to them meet at a relay. */
export const isServedByRelay = (world: World, site: string, gateway: Place): boolean =>
  world.relay !== undefined && !isServed(world, site) && isWireGuard(world, { site, pool: undefined }, gateway);

/** Whether two nodes that are to be linked, and of which neither can call the other, meet at a relay. */
export const isRelayed = (world: World, a: Place, b: Place): boolean => {
  if (world.relay === undefined) return false;
  if (a.pool === undefined || b.pool === undefined)
    return b.pool === undefined
      ? a.pool !== undefined && isServedByRelay(world, b.site, a)
      : isServedByRelay(world, a.site, b);
  const numbers = componentsOf(world);
  return numbers.get(a.pool) !== numbers.get(b.pool) && isWireGuard(world, a, b);
};

/** By names of pools, what was worked out; a world never changes. */
const relayedPools = new WeakMap<World, Map<string, boolean>>();

/** Whether gateways of two pools meet at a relay. */
export const arePoolsRelayed = (world: World, a: string, b: string): boolean => {
  if (world.relay === undefined) return false;
  const known = relayedPools.get(world) ?? new Map<string, boolean>();
  relayedPools.set(world, known);
  const key = a < b ? `${a} ${b}` : `${b} ${a}`;
  if (!known.has(key)) {
    const [here, there] = [a, b].map((name) => world.pools.get(name)?.gateways ?? []);
    known.set(
      key,
      here!.some((gateway) => there!.some((other) => isRelayed(world, gateway, other))),
    );
  }
  return known.get(key)!;
};
