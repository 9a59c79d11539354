import { z } from 'zod';
import { key, keyFile, list, port, prefix, wireGuardEndpoint } from './fields.ts';
import { protocolFile } from './protocol-file.ts';

/**
 * What the agent asks of node-keeper: a file for each user-space WireGuard interface. It holds all that the keeper needs to bring a
 * died process back as it was, endpoints included, without the agent. The keeper trusts the agent no further than this schema.
 */

const peer = z.object({
  publicKey: key,
  allowedIps: list(prefix, 65_536),
  /** Absent: the peer calls. */
  endpoint: wireGuardEndpoint.exactOptional(),
  persistentKeepaliveSeconds: z.int().min(0).max(65_535).exactOptional(),
});

const schema = z.object({
  device: z.string().regex(/^wg[0-9]{1,5}$/, 'must be wg<port>'),
  /** File with the private key; the key itself is in no unit. */
  privateKeyFile: keyFile,
  listenPort: port,
  peers: list(peer, 10_000),
});

export const tunnelUnit = protocolFile({
  name: 'tunnel unit',
  schema,
  maxBytes: 16 << 20,
  remedy: 'node-keeper is older than the agent: delete its pod on this node, so that it is replaced',
});
export type TunnelUnit = ReturnType<typeof tunnelUnit.parse>;
