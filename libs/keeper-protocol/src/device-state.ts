import { z } from 'zod';
import { protocolFile } from './protocol-file.ts';

/** What the keeper of tailnet devices has come to with a unit: for whoever wrote it, and for the keeper after this one. */

const LONGEST_PROBLEM = 1024;

const schema = z.object({
  /** In which the network was set up. */
  netns: z.string().max(255),
  /** Digest of the unit's network that stands in the pod; absent: none yet. */
  network: z.string().max(64).exactOptional(),
  /** false: IPv6 is off in the pod, so that the device has no IPv6 there. */
  hasIPv6: z.boolean(),
  /** How often the process was started since the keeper was. */
  starts: z.int().min(0),
  /** Of the network, or of the process. */
  problem: z.string().max(LONGEST_PROBLEM).exactOptional(),
});

export const deviceState = protocolFile({
  name: 'device state',
  schema,
  maxBytes: 1 << 16,
  remedy: 'the tailnet agent is older than the keeper of its devices: upgrade it',
});
export type DeviceState = ReturnType<typeof deviceState.parse>;

/** Of a problem as much as the file takes. */
export const problemText = (text: string): string => text.slice(0, LONGEST_PROBLEM);
