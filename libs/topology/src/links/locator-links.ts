import type { TunnelProtocol } from '@unbounded/crds';
import type { Member } from '../world/world.ts';
import type { Problem } from '../world/problem.ts';
import { familyOf } from './underlay.ts';

/** Which links carry locators, which are IPv6 whatever the pods and the underlay are. Both ends come to the same. */

interface Link {
  readonly peer: Member;
  readonly protocol: TunnelProtocol;
  /** It runs over external addresses. */
  readonly external: boolean;
}

const hasIpv6 = (addresses: readonly string[]): boolean => addresses.some((address) => familyOf(address) === 6);

const refusalOf = (own: Member, { peer, protocol, external }: Link): string | undefined => {
  if (protocol === 'IPIP') return 'IPIP carries IPv4 alone: set tunnelProtocol: VXLAN, GENEVE or WireGuard';
  const natively = (member: Member): boolean => hasIpv6(external ? member.externalIps : member.internalIps);
  if (protocol === 'None' && !(natively(own) && natively(peer)))
    return 'without a tunnel (None) both ends need IPv6 addresses: give the nodes some, or set tunnelProtocol: VXLAN, GENEVE or WireGuard';
  return undefined;
};

const without = <T extends Link>(link: T): T => {
  const { locator: _, ...peer } = link.peer;
  return { ...link, peer };
};

/** The link, with the peer's locator if frames of stretched L2 can go by it. A node without a locator sends and takes none. */
export const withCarriedLocator = <T extends Link>(own: Member, link: T, problems: Problem[]): T => {
  const { locator, name } = link.peer;
  if (!locator) return link;
  if (!own.locator) return without(link);
  const refusal = refusalOf(own, link);
  if (refusal === undefined) return link;
  problems.push({
    reason: 'LocatorNotCarried',
    message: `link ${[own.name, name].sort().join(' - ')} carries no frames of stretched L2, since ${refusal}`,
  });
  return without(link);
};
