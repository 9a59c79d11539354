import type { Family } from '@unbounded/ip';
import { networkSites } from '../world/reach.ts';
import type { Member, World } from '../world/world.ts';

/** Over which addresses two nodes meet. Both ends come to the same family, because both see the same addresses. */

export interface Underlay {
  /** The nodes share no network: they meet over external addresses. */
  readonly external: boolean;
  readonly family: Family;
  /** Address at which the peer calls us; undefined: we call. */
  readonly localIp: string | undefined;
  /** Address at which we call the peer; undefined: it finds us. Neither: they meet at a relay, and only there. */
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

const FAMILIES = [4, 6] as const;

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
  const both = FAMILIES.map(meet).find(({ localIp, remoteIp }) => localIp && remoteIp);
  if (both || !external) return both;
  // One calls the other. Where both ends have addresses to be called at, but of different families, either serves.
  return FAMILIES.map(meet).find(
    ({ family, localIp, remoteIp }) => (localIp ?? remoteIp) && canSend(local, family) && canSend(peer, family),
  );
};

/** How two nodes meet that call a relay, each by whatever family it can; IPv6 would be the smaller MTU. */
export const underlayByRelay = (local: Member, peer: Member): Underlay => ({
  external: true,
  family: FAMILIES.find((family) => canSend(local, family) && canSend(peer, family)) ?? 6,
  localIp: undefined,
  remoteIp: undefined,
});

export const familiesOf = (addresses: readonly string[]): ReadonlySet<Family> => new Set(addresses.map(familyOf));

/** Families that a site's nodes have addresses of: of its nodeCidrs, as addresses elsewhere do not count. */
const familiesIn = (world: World, site: string): ReadonlySet<Family> => {
  const blocks = world.sites.get(site)?.nodeCidrs ?? [];
  return new Set(blocks.length === 0 ? FAMILIES : blocks.map(({ family }) => family));
};

/**
 * Whether nodes of a site can call the gateway: in a network that both share, or at an external address; in a family that they have.
 * Without known addresses it is taken to be called in its network.
 */
export const canBeCalledFrom = (world: World, gateway: Member, site: string): boolean => {
  const external = !networkSites(world, gateway.site).has(site);
  const families = familiesOf(calledAt(world, gateway, external));
  return families.size === 0 ? !external : !families.isDisjointFrom(familiesIn(world, site));
};

/** The node's own address in the underlay, by which it is known: its first IPv4 one, else its first. */
export const ownIp = ({ internalIps }: Member): string | undefined => ofFamily(internalIps, 4) ?? internalIps[0];

/** How the gateways of a pool can be met, all taken together. */
export interface Meeting {
  readonly sites: ReadonlySet<string>;
  /** Families of addresses at which others call them, and of those they can call. */
  readonly calledAt: ReadonlySet<Family>;
  readonly calling: ReadonlySet<Family>;
}

export const meetingOf = (world: World, gateways: readonly Member[]): Meeting => ({
  sites: new Set(gateways.map(({ site }) => site)),
  calledAt: familiesOf(gateways.flatMap((gateway) => calledAt(world, gateway, true))),
  calling: new Set(FAMILIES.filter((family) => gateways.some((gateway) => canSend(gateway, family)))),
});

/** Whether some gateways of two pools can meet without a relay. */
export const canMeet = (world: World, a: Meeting, b: Meeting): boolean =>
  !a.calledAt.isDisjointFrom(b.calling) ||
  !b.calledAt.isDisjointFrom(a.calling) ||
  [...a.sites].some((site) => !networkSites(world, site).isDisjointFrom(b.sites));
