import { z } from 'zod';
import { key, list, port } from './fields.ts';
import { protocolFile } from './protocol-file.ts';

/** What the relay's proxies have come to: for the agent, and for the process after them, which takes the same ports. */

const schema = z.object({
  /** `own` and `peer` are public keys; the proxy listens on `port` of 127.0.0.1. */
  proxies: list(z.object({ own: key, peer: key, wireGuardPort: port, port }), 40_000),
  relays: list(
    z.object({ name: z.string().max(512), connected: z.boolean(), problem: z.string().max(1024).exactOptional() }),
    4096,
  ),
  /** Digest of the trust that is followed; absent: none was asked for. */
  trust: z.string().max(64).exactOptional(),
});

export const relayState = protocolFile({
  name: 'relay state',
  schema,
  maxBytes: 16 << 20,
  remedy:
    'the reader is older than the relay’s proxies that wrote it: upgrade node-dataplane and node-keeper to the same version',
});
export type RelayState = ReturnType<typeof relayState.parse>;
