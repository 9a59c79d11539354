import { z } from 'zod';
import { byName, count, message, name } from './bounds.ts';
import { connectivityStatus } from './connectivity-status.ts';
import { egressStatus } from './egress-status.ts';
import { listOf } from './entries.ts';

/** A section or the agent itself could not do all that it should. */
const nodeProblem = z.object({ reason: name, message });

const MOST_PROBLEMS = 200;
const MOST_REASONS = 256;

/**
 * All that a node's agent observes. It does not name the node: that is the token's to say. A later version may add members, which this one
 * passes over; a member that is absent is not known.
 */
export const nodeReport = z.object({
  /** Of the agent: version of the product. */
  agentVersion: z.string().max(64),
  /** Every section has reported since the agent started; what others are for is not known. */
  isComplete: z.boolean(),
  problems: listOf(nodeProblem, MOST_PROBLEMS),
  /** Packets that tables of ours dropped since the agent's start, by reason. */
  drops: byName(count, MOST_REASONS),
  connectivity: connectivityStatus.optional(),
  egress: egressStatus.optional(),
});

export type NodeReport = z.infer<typeof nodeReport>;
