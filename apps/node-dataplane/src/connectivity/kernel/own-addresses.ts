import type { LinkAddress } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { familyOf } from '../../kernel/nft-family.ts';

/**
 * From which address tunnel packets leave. Peers know the node by its InternalIP; the kernel would choose another where the
 * node has several. One that is not the node's own at all (a NAT's) cannot be sent from.
 */

/** The plan with only those of its own addresses that the node has. */
export const withLocalAddresses = (
  plan: KernelPlan,
  present: readonly LinkAddress[],
): { readonly plan: KernelPlan; readonly problems: readonly Problem[] } => {
  const local = new Set(present.map(({ address }) => address.split('/')[0]));
  const ownAddresses = plan.ownAddresses.filter((address) => local.has(address));
  const families = new Set(plan.tunnels.length === 0 ? [] : plan.ownAddresses.map(familyOf));
  const missing = plan.ownAddresses.filter((address) => families.has(familyOf(address)) && !local.has(address));
  const problems = missing.map((address): Problem => ({
    reason: 'InternalIPNotLocal',
    message: `InternalIP ${address} is no address of this node: peers drop what its unencrypted tunnels send, because it comes from another; let kubelet report an address that the node has (--node-ip), or use WireGuard`,
  }));
  return { plan: { ...plan, ownAddresses, routes: withLocalSources(plan, local) }, problems };
};

/** No route can prefer a source that the node does not have: it is the overlay address then, which comes with our own devices. */
const withLocalSources = (
  { routes, ownAddresses, overlayAddresses }: KernelPlan,
  local: ReadonlySet<string | undefined>,
) => {
  const missing = new Set(ownAddresses.filter((address) => !local.has(address)));
  if (missing.size === 0) return routes;
  return routes.map((route) => {
    if (route.prefSrc === undefined || !missing.has(route.prefSrc)) return route;
    const { prefSrc, ...rest } = route;
    const overlay = overlayAddresses
      .map((text) => text.split('/')[0]!)
      .find((text) => familyOf(text) === familyOf(prefSrc));
    return overlay === undefined ? rest : { ...rest, prefSrc: overlay };
  });
};

/** The address from which packets go to a far end; undefined: the kernel chooses. */
export const sourceTowards = (
  { ownAddresses, externalTunnelPeers }: Pick<KernelPlan, 'ownAddresses' | 'externalTunnelPeers'>,
  remoteIp: string,
): string | undefined =>
  externalTunnelPeers.includes(remoteIp)
    ? undefined
    : ownAddresses.find((address) => familyOf(address) === familyOf(remoteIp));
