import { innerMac } from '@unbounded/bpf-maps';
import { DEVICES, EGRESS_ROUTE_PROTOCOL, PORTS } from '@unbounded/config/ownership';
import type { LinkSpec, NeighbourSpec, VxlanKind } from '@unbounded/netlink';
import { formatAddress, linkLocalOf } from '@unbounded/ip';
import { FAMILIES, type Family } from '../../kernel/nft-family.ts';
import type { EgressPlan } from './egress-plan.ts';
import { outerAddress, outerFamily } from './tunnel-packets.plan.ts';

/**
 * The tunnel to owners and back: VXLAN between nodes' addresses in the overlay, so that gateways, WireGuard's allowed addresses and relays
 * see packets of nodes alone. Every far end is entered by hand: its MAC follows from its address, and nothing is learned from packets.
 */

/** Of packets in the tunnel; those of connectivity's own have 1. */
const VNI = 2;

/** Outer IP and UDP, VXLAN, inner Ethernet. */
const OVERHEAD_BYTES = { ip: 20 + 8 + 8 + 14, ip6: 40 + 8 + 8 + 14 } as const;

export const tunnelMtuBytes = (plan: Pick<EgressPlan, 'overlayAddresses'>, overlayMtuBytes: number): number =>
  overlayMtuBytes - OVERHEAD_BYTES[outerFamily(plan)];

export type TunnelSpec = Required<Pick<LinkSpec, 'name' | 'mac' | 'mtu'>> & {
  readonly kind: VxlanKind;
  /** Of IPv4, with its length: without any the kernel's reverse-path filter takes nothing from the device, also where it is loose. */
  readonly address: string | undefined;
};

/** Undefined: the node has no address in the overlay. */
export const planTunnel = (plan: EgressPlan): TunnelSpec | undefined => {
  const local = outerAddress(plan.overlayAddresses, outerFamily(plan));
  if (local === undefined) return undefined;
  const own = outerAddress(plan.overlayAddresses, 'ip');
  return {
    name: DEVICES.egress,
    mac: innerMac(local),
    mtu: plan.mtuBytes,
    kind: { kind: 'vxlan', vni: VNI, local, port: PORTS.egress, learning: false },
    address: own === undefined ? undefined : `${own}/32`,
  };
};

/**
 * By which routes of a family know a far end. The kernel takes no IPv6 next hop that it reaches by another device, as it does the peer's own
 * address: there it is a link-local address, made from the MAC (RFC 4291, appendix A).
 */
export const gatewayOf = (overlayAddresses: readonly string[], family: Family, outer: Family): string | undefined => {
  if (family === 'ip') return outerAddress(overlayAddresses, 'ip');
  const remote = outerAddress(overlayAddresses, outer);
  if (remote === undefined) return undefined;
  return formatAddress(linkLocalOf(innerMac(remote)));
};

/** Far ends: how each is known by its addresses, and to which address its packets go. */
export const planFarEnds = (plan: EgressPlan, link: number): NeighbourSpec[] => {
  const family = outerFamily(plan);
  return plan.peers.flatMap(({ overlayAddresses }): NeighbourSpec[] => {
    const remote = outerAddress(overlayAddresses, family);
    if (remote === undefined) return [];
    const own = { link, mac: innerMac(remote), state: 'permanent', protocol: EGRESS_ROUTE_PROTOCOL } as const;
    return [
      { ...own, family: 'bridge', address: remote },
      ...FAMILIES.flatMap((inner): NeighbourSpec[] => {
        const address = gatewayOf(overlayAddresses, inner, family);
        return address === undefined ? [] : [{ ...own, family: inner === 'ip' ? 4 : 6, address }];
      }),
    ];
  });
};
