import { containsAddress, parseAddress, parsePrefix } from '@unbounded/ip';
import { PORTS } from '@unbounded/config/ownership';
import type { LabLayout } from '../layout/layout.ts';
import { isWireGuard, type Packet } from './pcap.ts';

/** What must not be seen on a wire where WireGuard is said. */

/** IP in IP, IPv6 in IP, GRE. */
const ENCAPSULATIONS = new Set([4, 41, 47]);
const TUNNEL_PORTS = new Set<number | undefined>([PORTS.vxlan, PORTS.geneve]);

/** Whether a packet is a pod's, or a tunnel's that does not encrypt. */
export const inClearOf = (layout: LabLayout): ((packet: Packet) => boolean) => {
  const pools = layout.sites.flatMap(({ podPools }) => podPools.map(parsePrefix));
  const isPods = (text: string | undefined): boolean => {
    if (text === undefined) return false;
    const address = parseAddress(text);
    return pools.some((pool) => pool.family === address.family && containsAddress(pool, address));
  };
  return (packet) =>
    !isWireGuard(packet) &&
    (isPods(packet.source) ||
      isPods(packet.destination) ||
      TUNNEL_PORTS.has(packet.destinationPort) ||
      ENCAPSULATIONS.has(packet.protocol ?? -1));
};

export const inWords = ({ source, destination, protocol, destinationPort }: Packet): string =>
  `${source} > ${destination} protocol ${protocol} port ${destinationPort ?? 'none'}`;
