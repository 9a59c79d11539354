import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { addressBits, formatPrefix, parsePrefix, type Prefix } from '@unbounded/ip';
import type { Link, RouteSpec } from '@unbounded/netlink';
import { DEVICES } from '../../data-path/devices.ts';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { familyOf } from '../../kernel/nft-family.ts';

/**
 * The node's own pods ask it at its InternalIP (status.hostIP) as others do, so its answers have that source. The kernel's own route of the
 * bridge prefers the bridge's address; two for the halves of the block are narrower, and leave it as it is.
 */

const halvesOf = ({ family, address, length }: Prefix): Prefix[] => {
  const half = 1n << BigInt(addressBits(family) - length - 1);
  return [address, address + half].map((first) => ({ family, address: first, length: length + 1 }));
};

export const planBridgeRoutes = (plan: KernelPlan, links: ReadonlyMap<string, Pick<Link, 'index'>>): RouteSpec[] => {
  const bridge = links.get(DEVICES.bridge);
  if (!bridge || !plan.manageCni) return [];
  return plan.podCidrs.flatMap((text): RouteSpec[] => {
    const block = parsePrefix(text);
    const prefSrc = plan.ownAddresses.find((address) => familyOf(address) === familyOf(text));
    if (prefSrc === undefined || block.length > addressBits(block.family) - 2) return [];
    return halvesOf(block).map((half) => ({
      dst: formatPrefix(half),
      protocol: ROUTE_PROTOCOL,
      link: bridge.index,
      prefSrc,
    }));
  });
};
