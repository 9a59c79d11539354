import { z } from 'zod';
import { count } from './bounds.ts';
import { listOf } from './entries.ts';

const MOST_ADDRESSES = 1_024;
/** Of IPv4 or IPv6, as far as its characters go. */
const address = z.string().regex(/^[0-9a-f.:]{2,45}$/, { error: 'must be an IP address' });

/** What egress at a node has in force. */
export const egressStatus = z.object({
  /** The kernel enforces the node's plan. */
  isInForce: z.boolean(),
  /** Of the egress addresses that the controller gave to the node, those that it answers for now. */
  heldAddresses: listOf(address, MOST_ADDRESSES),
  /** Pods of this node that leave with egress addresses. */
  steeredPods: count,
});
