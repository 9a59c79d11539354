import { z } from 'zod';
import { protocolFile } from './protocol-file.ts';

/** What the relay's proxies of a node have counted since their process started. */

const count = z.int().min(0);
const directions = z.object({ sent: count, received: count });
const MOST_REASONS = 64;

const schema = z.object({
  /** Packets of WireGuard, a frame each. */
  frames: directions,
  /** Of these frames. */
  bytes: directions,
  /** To relays. */
  connections: count,
  /** Sockets that were made anew after an error. */
  rebinds: count,
  /** Packets that went nowhere, by reason. Each reason is a label of a metric; a later version may have others. */
  dropped: z
    .record(z.string().regex(/^\w{1,32}$/, 'must be 1 to 32 letters, digits or _'), count)
    .refine((reasons) => Object.keys(reasons).length <= MOST_REASONS, `must have at most ${MOST_REASONS} reasons`),
  /** One more every two seconds: the process lives. Former versions have none. */
  beats: count.exactOptional(),
});

export const relayTallies = protocolFile({
  name: 'relay tallies',
  schema,
  maxBytes: 64 << 10,
  remedy: 'the agent is older than node-keeper: upgrade node-dataplane',
});
export type RelayTallies = ReturnType<typeof relayTallies.parse>;
