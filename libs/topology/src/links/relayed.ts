import { resolveProtocol } from './protocol.ts';
import { poolsOfSite } from '../world/reach.ts';
import { countedOf } from '../world/usable.ts';
import { leadToEachOther } from './direct-ways.ts';
import { type Place, scopesOf } from './scopes.ts';
import { canBeCalledFrom } from './underlay.ts';
import type { Member, World } from '../world/world.ts';

/**
 * Where two nodes meet at a relay because neither can call the other: only where nothing else joins them, so that a relay never takes
 * over what another way carries. Decided by the objects alone, and for each two nodes: what one gateway of a pool can meet takes the
 * relay from no other.
 */

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

/** How a site's nodes can call the gateways that it is assigned to. */
interface Calls {
  /** Pools with a gateway that they can call. */
  readonly pools: ReadonlySet<string>;
  /** Of a pool more than half can be called: the site needs no other pool by a relay. One of two does not speak for both. */
  readonly isServed: boolean;
}

const calls = new WeakMap<World, Map<string, Calls>>();

const callsOf = (world: World, site: string): Calls => {
  const known = calls.get(world) ?? new Map<string, Calls>();
  calls.set(world, known);
  const found = known.get(site);
  if (found) return found;
  const counted = poolsOfSite(world, site).map((name) => {
    const gateways = countedOf(world.pools.get(name)!.gateways);
    const called = gateways.filter((gateway) => canBeCalledFrom(world, gateway, site)).length;
    return { name, called, isMost: called * 2 > gateways.length };
  });
  const result: Calls = {
    pools: new Set(counted.filter(({ called }) => called > 0).map(({ name }) => name)),
    isServed: counted.some(({ isMost }) => isMost),
  };
  known.set(site, result);
  return result;
};

/** Whether a site's nodes and a gateway that is assigned to them, which they cannot call, meet at a relay. */
const isServedByRelay = (world: World, site: string, gateway: Place): boolean => {
  if (world.relay === undefined) return false;
  const { pools, isServed } = callsOf(world, site);
  return (!isServed || pools.has(gateway.pool!)) && isWireGuard(world, { site, pool: undefined }, gateway);
};

/** Whether a gateway can link with nodes of a site that its pool is assigned to. */
export const canServe = (world: World, gateway: Member, site: string): boolean =>
  canBeCalledFrom(world, gateway, site) || isServedByRelay(world, site, gateway);

/** Whether two nodes that are to be linked, and of which neither can call the other, meet at a relay. */
export const isRelayed = (world: World, a: Member, b: Member): boolean => {
  if (world.relay === undefined || a.pool === b.pool) return false;
  if (a.pool === undefined) return isServedByRelay(world, a.site, b);
  if (b.pool === undefined) return isServedByRelay(world, b.site, a);
  return !leadToEachOther(world, a, b) && isWireGuard(world, a, b);
};
