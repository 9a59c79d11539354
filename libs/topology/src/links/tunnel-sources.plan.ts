import type { PeerLink } from './links.plan.ts';
import type { NodePlan } from '../plan.ts';
import { familyOf } from './underlay.ts';
import type { Member } from '../world/world.ts';

/** From which address the packets of unencrypted tunnels are to come, since receivers know their senders by it. */
export const planTunnelSources = (
  { internalIps }: Member,
  links: readonly PeerLink[],
): Pick<NodePlan, 'ownAddresses' | 'externalTunnelPeers'> => ({
  ownAddresses: ([4, 6] as const).flatMap((family) => internalIps.find((ip) => familyOf(ip) === family) ?? []),
  externalTunnelPeers: links
    .filter(({ protocol, external }) => external && protocol !== 'WireGuard' && protocol !== 'None')
    .flatMap(({ remoteIp }) => remoteIp ?? [])
    .sort(),
});
