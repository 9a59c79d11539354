import { KEY_GENERATION_PORTS, MESH_WIREGUARD_PORT } from '@unbounded/crds';
import { formatPrefix, hostPrefix, parseAddress, withoutCovered } from '@unbounded/ip';
import type { TunnelEnds } from '../plan.ts';
import type { Member, World } from '../world/world.ts';

/** Where tunnels of our nodes end: what no pod has any business to send tunnel packets to. */

/** Ports that a link's ends may have, with what key rotation adds to them ({@link lanesOf}). */
const SHIFTS = [0, 1, 2, 3].map((lanes) => lanes * KEY_GENERATION_PORTS);

const isRotating = ({ keyGeneration, nextPublicKey }: Member): boolean =>
  keyGeneration > 0 || nextPublicKey !== undefined;

export const planTunnelEnds = (world: World, site: string): TunnelEnds => {
  const allowed = world.sites.get(site)?.podTunnelCidrs ?? [];
  const gateways = [...world.pools.values()].flatMap((pool) => pool.gateways);
  const addresses = gateways.flatMap(({ internalIps, externalIps }) => [...internalIps, ...externalIps]);
  const nodes = [...world.sites.values()].flatMap(({ nodeCidrs }) => nodeCidrs);
  const ports = new Set([MESH_WIREGUARD_PORT, ...gateways.flatMap(({ gatewayPort }) => gatewayPort ?? [])]);
  const shifts = [...world.workers, ...gateways].some(isRotating) ? SHIFTS : [0];
  return {
    addresses: withoutCovered([...nodes, ...addresses.map((ip) => hostPrefix(parseAddress(ip)))]).map(formatPrefix),
    wireGuardPorts: [...ports].flatMap((port) => shifts.map((shift) => port + shift)).sort((a, b) => a - b),
    ...(allowed.length === 0 ? {} : { allowed: withoutCovered(allowed).map(formatPrefix) }),
  };
};
