import { isRelayed } from '../links/relayed.ts';
import { canMeet, type Meeting, meetingOf, underlayOf } from '../links/underlay.ts';
import { peeringsOf } from '../world/reach.ts';
import { type Carried, carries } from '../world/usable.ts';
import type { Member, World } from '../world/world.ts';

/** Which pools are joined, as far as distances go: those of which some gateways meet, and those of which some meet at a relay alone. */

/** Names of pools of a peering. */
export type PoolList = readonly string[];

/** The pools of the peerings with gateways for what is carried, by each of them. */
export interface Neighbours {
  /** Those that it may be able to meet: of a peering no others, since hundreds of pools may have a relay alone. */
  readonly near: ReadonlyMap<string, readonly PoolList[]>;
  readonly all: ReadonlyMap<string, readonly PoolList[]>;
}

/** What is worked out once for a world and asked for again and again; a world never changes. */
interface Known {
  readonly carriers: Map<string, readonly Member[]>;
  /** By what is carried and name; undefined: no gateway of the pool carries it. */
  readonly meetings: Map<string, Meeting | undefined>;
  readonly neighbours: Map<Carried, Neighbours>;
  readonly relayed: Map<string, boolean>;
  parts: ReadonlyMap<string, number> | undefined;
}

const remembered = new WeakMap<World, Known>();

const knownOf = (world: World): Known => {
  const known = remembered.get(world) ?? {
    ...{ carriers: new Map(), meetings: new Map(), neighbours: new Map(), relayed: new Map() },
    parts: undefined,
  };
  remembered.set(world, known);
  return known;
};

const carriersOf = (world: World, name: string, family: Carried): readonly Member[] => {
  const { carriers } = knownOf(world);
  const key = `${family} ${name}`;
  const found = carriers.get(key) ?? world.pools.get(name)?.gateways.filter((one) => carries(one, family)) ?? [];
  carriers.set(key, found);
  return found;
};

const meetingOfPool = (world: World, name: string, family: Carried): Meeting | undefined => {
  const { meetings } = knownOf(world);
  const key = `${family} ${name}`;
  if (!meetings.has(key)) {
    const gateways = carriersOf(world, name, family);
    meetings.set(key, gateways.length === 0 ? undefined : meetingOf(world, gateways));
  }
  return meetings.get(key);
};

/** Whether a pool has a gateway for what is carried. */
export const hasCarrier = (world: World, name: string, family: Carried): boolean =>
  carriersOf(world, name, family).length > 0;

/** Pools by name, with the same number for those that some of their gateways join without a relay. */
const findParts = (world: World): ReadonlyMap<string, number> => {
  const meetings = new Map<string, Meeting>(
    [...world.pools].map(([name, { gateways }]) => [name, meetingOf(world, gateways)]),
  );
  const found = new Map<string, number>();
  for (const [start, number] of [...meetings.keys()].sort().map((name, index) => [name, index] as const)) {
    const waiting = found.has(start) ? [] : [start];
    for (const name of waiting) {
      found.set(name, number);
      for (const { members } of peeringsOf(world, name)) {
        for (const other of members) {
          const there = meetings.get(other);
          if (!there || found.has(other) || !canMeet(world, meetings.get(name)!, there)) continue;
          found.set(other, number);
          waiting.push(other);
        }
      }
    }
  }
  return found;
};

const partOf = (world: World, name: string): number | undefined => {
  const known = knownOf(world);
  known.parts ??= findParts(world);
  return known.parts.get(name);
};

const addTo = (lists: Map<string, PoolList[]>, list: PoolList): void => {
  if (list.length < 2) return;
  for (const name of list) {
    const known = lists.get(name) ?? [];
    known.push(list);
    lists.set(name, known);
  }
};

/** Of all peerings at once, because every target asks for those of every pool. */
export const neighboursOf = (world: World, family: Carried): Neighbours => {
  const { neighbours } = knownOf(world);
  const known = neighbours.get(family);
  if (known) return known;
  const [near, all] = [new Map<string, PoolList[]>(), new Map<string, PoolList[]>()];
  for (const { members } of world.poolPeerings) {
    const usable = [...members].filter((name) => hasCarrier(world, name, family));
    addTo(all, usable);
    for (const part of Map.groupBy(usable, (name) => partOf(world, name)).values()) addTo(near, part);
  }
  const found = { near, all };
  neighbours.set(family, found);
  return found;
};

export interface Pair {
  readonly a: string;
  readonly b: string;
  readonly family: Carried;
}

/** Whether some gateways of two pools can meet without a relay. */
export const arePoolsMeeting = (world: World, { a, b, family }: Pair): boolean => {
  const [here, there] = [meetingOfPool(world, a, family), meetingOfPool(world, b, family)];
  return here !== undefined && there !== undefined && canMeet(world, here, there);
};

/** Whether gateways of two pools meet at a relay, and none of them without one. */
export const arePoolsRelayed = (world: World, pair: Pair): boolean => {
  if (world.relay === undefined) return false;
  const { a, b, family } = pair;
  const { relayed } = knownOf(world);
  const key = a < b ? `${family} ${a} ${b}` : `${family} ${b} ${a}`;
  const known = relayed.get(key);
  if (known !== undefined) return known;
  const there = carriersOf(world, b, family);
  const found =
    !arePoolsMeeting(world, pair) &&
    carriersOf(world, a, family).some((gateway) => there.some((other) => isRelayed(world, gateway, other)));
  relayed.set(key, found);
  return found;
};

/** Whether a gateway can link with one of a pool that its own is peered with. */
export const canLinkWithPool = (world: World, gateway: Member, pool: string, family: Carried): boolean =>
  carriersOf(world, pool, family).some(
    (other) => underlayOf(world, gateway, other) !== undefined || isRelayed(world, gateway, other),
  );
