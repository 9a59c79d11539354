import { z } from 'zod';
import { count } from './bounds.ts';

const MOST_ADDRESSES = 4_096;
const address = z.string().max(64);

/** What egress at a node has in force. */
export const egressStatus = z.object({
  /** The kernel enforces the node's plan. */
  isInForce: z.boolean(),
  /** Of the egress addresses that the controller gave to the node, those that it answers for now. */
  heldAddresses: z.array(address).max(MOST_ADDRESSES),
  /** Pods of this node that leave with egress addresses. */
  steeredPods: count,
});

export type EgressStatus = z.infer<typeof egressStatus>;
