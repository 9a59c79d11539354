import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { keySchema, portSchema } from './relay-unit.ts';

/** What the relay's proxies have come to: told to the agent, and kept so that ports stay. */

const stateSchema = z.strictObject({
  proxies: z
    .array(z.strictObject({ own: keySchema, peer: keySchema, wireGuardPort: portSchema, port: portSchema }))
    .max(40_000),
  relays: z
    .array(z.strictObject({ name: z.string(), connected: z.boolean(), problem: z.string().exactOptional() }))
    .max(4096),
  /** Which trust is followed; absent: none was asked for. */
  trust: z.string().exactOptional(),
});
export type RelayState = z.infer<typeof stateSchema>;

const NOTHING: RelayState = { proxies: [], relays: [] };

/** Of the process before this one; nothing when there is no such file, or it holds something else. */
export const readRelayState = (file: string): RelayState => {
  try {
    return stateSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return NOTHING;
  }
};
