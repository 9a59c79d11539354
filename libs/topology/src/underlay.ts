import type { Family } from '@unbounded/ip';
import { networkSites } from './reach.ts';
import type { Member, World } from './world.ts';

/** Over which addresses two nodes meet. Both ends come to the same family, because both see the same addresses. */

export interface Underlay {
  /** The nodes share no network: they meet over external addresses. */
  readonly external: boolean;
  readonly family: Family;
  /** Address at which the peer calls us; undefined: we call. */
  readonly localIp: string | undefined;
  /** Address at which we call the peer; undefined: it finds us. */
  readonly remoteIp: string | undefined;
}

export const familyOf = (address: string): Family => (address.includes(':') ? 6 : 4);
const ofFamily = (addresses: readonly string[], family: Family): string | undefined =>
  addresses.find((address) => familyOf(address) === family);

/** Addresses at which others reach the member; only gateways of External pools can be called from elsewhere. */
const calledAt = (world: World, member: Member, external: boolean): readonly string[] => {
  if (!external) return member.internalIps;
  return member.pool !== undefined && world.pools.get(member.pool)?.external ? member.externalIps : [];
};

/** Whether the member can send packets of the family; without known addresses it is taken to. */
const canSend = (member: Member, family: Family): boolean => {
  const own = [...member.internalIps, ...member.externalIps];
  return own.length === 0 || ofFamily(own, family) !== undefined;
};

/** How two nodes meet; undefined: neither can call the other. IPv4 when both have it, else IPv6. */
export const underlayOf = (world: World, local: Member, peer: Member): Underlay | undefined => {
  const external = !networkSites(world, local.site).has(peer.site);
  const [us, them] = [calledAt(world, local, external), calledAt(world, peer, external)];
  const meet = (family: Family): Underlay => ({
    external,
    family,
    localIp: ofFamily(us, family),
    remoteIp: ofFamily(them, family),
  });
  const both = ([4, 6] as const).map(meet).find(({ localIp, remoteIp }) => localIp && remoteIp);
  if (both || !external) return both;
  // One calls the other. Where both ends have addresses to be called at, but of different families, either serves.
  return ([4, 6] as const)
    .map(meet)
    .find(({ family, localIp, remoteIp }) => (localIp ?? remoteIp) && canSend(local, family) && canSend(peer, family));
};

/** Whether any gateway of one pool can call one of the other: else a peering of the pools leads nowhere. */
export const canMeet = (world: World, a: readonly Member[], b: readonly Member[]): boolean =>
  a.some((one) => b.some((other) => underlayOf(world, one, other) !== undefined));
