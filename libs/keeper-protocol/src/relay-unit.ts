import { checkTrust } from '@unbounded/relay-client';
import { z } from 'zod';
import { host, isUnique, key, keyFile, list, port } from './fields.ts';
import { protocolFile } from './protocol-file.ts';

/**
 * What the agent asks of the relay's proxies, in one file. They trust the agent no further than this schema; and what comes
 * from outside in it, addresses of relays, is all bounded.
 */

const endpoint = z.object({ host, port, isTls: z.boolean(), serverName: host.exactOptional() });
const service = z.object({
  name: z.string().min(1).max(512),
  ways: list(endpoint, 32).refine((ways) => ways.length > 0, 'must have at least 1 element'),
  isBalanced: z.boolean().exactOptional(),
});

const MOST_CA_BYTES = 65_536;
/** By what relays are known. It comes in this file, which only root reads, and not by arguments or the environment. */
const trust = z
  .object({ caBundle: z.string().max(MOST_CA_BYTES).exactOptional(), staticKey: key.exactOptional() })
  .check(({ value, issues }) => {
    try {
      checkTrust(value);
    } catch (error) {
      issues.push({ code: 'custom', message: (error as Error).message, input: value });
    }
  });

const identity = z.object({
  publicKey: key,
  /** File with the private key; the key itself is in no unit. */
  privateKeyFile: keyFile,
  peers: list(z.object({ publicKey: key, wireGuardPort: port }), 10_000).refine(
    (peers) => isUnique(peers.map(({ publicKey }) => publicKey)),
    'has a peer twice: each publicKey must be unique',
  ),
});

const schema = z.object({
  /** Absent when there is none: keepers of commit d3a782d and before refuse a unit that has it. */
  trust: trust.exactOptional(),
  services: list(service, 8).refine(
    (services) => isUnique(services.map(({ name }) => name)),
    'has a name twice: each name must be unique',
  ),
  /** The node's own keys. */
  identities: list(identity, 4).refine(
    (identities) => isUnique(identities.map(({ publicKey }) => publicKey)),
    'has an identity twice: each publicKey must be unique',
  ),
});

export const relayUnit = protocolFile({
  name: 'relay unit',
  schema,
  maxBytes: 16 << 20,
  remedy: 'node-keeper is older than the agent: delete its pod on this node, so that it is replaced',
});
export type RelayUnit = ReturnType<typeof relayUnit.parse>;
export type RelayIdentity = RelayUnit['identities'][number];
