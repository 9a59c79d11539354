import { peeringsOf } from '../world/reach.ts';
import { countedOf } from '../world/usable.ts';
import type { Join, Member, World } from '../world/world.ts';
import { familiesOf, underlayOf } from './underlay.ts';

/**
 * Which gateways one leads to without a relay, by a link of its own and by those of the gateways that follow. Never by another
 * gateway of its own pool: what one of them can meet says nothing of the others, and it may state what it likes.
 */

/** Gateways of a pool that meet the same ones. */
interface Kind {
  readonly key: string;
  readonly pool: string;
  readonly gateway: Member;
}

interface Known {
  readonly kindsOf: Map<string, readonly Kind[]>;
  /** By key of a kind. */
  readonly ledTo: Map<string, ReadonlySet<string>>;
}

/** What is worked out once for a world; a world never changes. */
const remembered = new WeakMap<World, Known>();

const knownOf = (world: World): Known => {
  const known = remembered.get(world) ?? { kindsOf: new Map(), ledTo: new Map() };
  remembered.set(world, known);
  return known;
};

const kindOf = (gateway: Member, pool: string): Kind => {
  const { site, internalIps, externalIps } = gateway;
  const families = [internalIps, externalIps].map((addresses) =>
    ([4, 6] as const).filter((family) => familiesOf(addresses).has(family)).join('+'),
  );
  return { key: [pool, site, ...families].join(' '), pool, gateway };
};

const kindsOf = (world: World, pool: string): readonly Kind[] => {
  const known = knownOf(world).kindsOf;
  const found = known.get(pool);
  if (found) return found;
  const all = countedOf(world.pools.get(pool)?.gateways ?? []).map((gateway) => kindOf(gateway, pool));
  const kinds = [...new Map(all.map((kind) => [kind.key, kind])).values()];
  known.set(pool, kinds);
  return kinds;
};

/** All kinds that a kind leads to, itself first. */
const kindsFrom = (world: World, start: Kind): readonly Kind[] => {
  const reached = [start];
  const keys = new Set([start.key]);
  const left = new Map<Join, readonly Kind[]>();
  for (const at of reached) {
    for (const peering of peeringsOf(world, at.pool)) {
      const waiting = left.get(peering) ?? [...peering.members].flatMap((name) => kindsOf(world, name));
      left.set(
        peering,
        waiting.filter((kind) => {
          if (kind.pool === start.pool || keys.has(kind.key)) return false;
          if (kind.pool === at.pool || !underlayOf(world, at.gateway, kind.gateway)) return true;
          keys.add(kind.key);
          reached.push(kind);
          return false;
        }),
      );
    }
  }
  return reached;
};

const isUniform = (world: World, { key, pool }: Kind): boolean =>
  kindsOf(world, pool).every((other) => other.key === key);

/** By their keys all kinds that a gateway leads to without a relay. */
const kindsLedTo = (world: World, start: Kind): ReadonlySet<string> => {
  const { ledTo } = knownOf(world);
  const known = ledTo.get(start.key);
  if (known) return known;
  const kinds = kindsFrom(world, start);
  const keys = new Set(kinds.map(({ key }) => key));
  ledTo.set(start.key, keys);
  // Between pools of one kind the way is the same there and back.
  if (isUniform(world, start)) for (const kind of kinds) if (isUniform(world, kind)) ledTo.set(kind.key, keys);
  return keys;
};

/** Whether two gateways of different pools lead to each other without a relay, and without another gateway of the pool of either. */
export const leadToEachOther = (world: World, a: Member, b: Member): boolean => {
  const [here, there] = [kindOf(a, a.pool!), kindOf(b, b.pool!)];
  return kindsLedTo(world, here).has(there.key) && kindsLedTo(world, there).has(here.key);
};
