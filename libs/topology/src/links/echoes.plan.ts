import {
  addressBits,
  type Family,
  firstAddress,
  formatAddress,
  hostPrefix,
  lastAddress,
  type Prefix,
} from '@unbounded/ip';
import type { EchoPlan } from '../plan.ts';
import type { Member, World } from '../world/world.ts';
import type { PeerLink } from './links.plan.ts';
import type { LocalNode } from './local-node.ts';
import { nextHopOf } from './next-hops.ts';

/** Echoes through the gateways of a node: which are sent, and which of its links return them. */

/** Bits of hosts that a block needs, so that it has an address beside its first that no pod gets. */
const LEAST_HOST_BITS = 2;

/**
 * The address of a block that echoes have: its network address with IPv4, its last one with IPv6, where the first is the routers' anycast
 * address (RFC 4291 2.6.1). Undefined: the block has none to spare.
 */
export const echoAddress = (block: Prefix): Prefix | undefined => {
  if (addressBits(block.family) - block.length < LEAST_HOST_BITS) return undefined;
  return hostPrefix(block.family === 4 ? { family: 4, value: block.address } : lastAddress(block));
};

const echoOf = ({ podCidrs }: Member, family: Family): Prefix | undefined => {
  const block = podCidrs.find((own) => own.family === family);
  return block && echoAddress(block);
};

/** Only gateways send on what came out of a tunnel, and a node has an interface of its own for each of them. */
const leadsToGateway = ({ role, protocol, health }: PeerLink): boolean =>
  (role === 'toGateway' || role === 'pool' || role === 'peered') && protocol !== 'None' && health.enabled;

export interface Echoes {
  /** Addresses of the node that come back over a link. */
  over(link: PeerLink): Prefix[];
  readonly plans: readonly EchoPlan[];
}

/** Where another plug-in manages the pods their addresses are its own to give, and there are no echoes. */
export const planEchoes = (world: World, local: LocalNode, links: readonly PeerLink[]): Echoes => {
  const isManaged = world.sites.get(local.member.site)?.manageCni ?? false;
  const found = links
    .filter((link) => isManaged && leadsToGateway(link))
    .flatMap((link) =>
      (local.echoFamilies ?? [4, 6]).flatMap((family) => {
        const [own, far] = [echoOf(local.member, family), echoOf(link.peer, family)];
        const via = nextHopOf(local, link, family);
        if (!own || !far || !via) return [];
        const [localAddress, address] = [own, far].map((host) => formatAddress(firstAddress(host))) as [string, string];
        return [{ link, own, plan: { node: link.peer.name, family, localAddress, address, via } satisfies EchoPlan }];
      }),
    )
    .toSorted((a, b) => (a.plan.node < b.plan.node ? -1 : 1));
  return {
    over: (link) => found.flatMap((echo) => (echo.link === link ? [echo.own] : [])),
    plans: found.map(({ plan }) => plan),
  };
};
