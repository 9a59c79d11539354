import { firstAddress, formatAddress } from '@unbounded/ip';
import type { World } from './world.ts';

/** Where a node is: in the overlay, and outside of it. */
export interface NodeAddresses {
  readonly node: string;
  /** The first of its first block of each family. */
  readonly overlayAddresses: readonly string[];
  /** Internal and external ones. */
  readonly addresses: readonly string[];
}

/** Of all members. */
export const nodeAddresses = ({ pools, workers }: World): NodeAddresses[] => {
  const gateways = [...pools.values()].flatMap((pool) => pool.gateways);
  const members = new Map([...workers, ...gateways].map((member) => [member.name, member]));
  return [...members.values()].map(({ name, podCidrs, internalIps, externalIps }) => ({
    node: name,
    overlayAddresses: ([4, 6] as const).flatMap((family) => {
      const block = podCidrs.find((own) => own.family === family);
      return block ? [formatAddress(firstAddress(block))] : [];
    }),
    addresses: [...new Set([...internalIps, ...externalIps])],
  }));
};
