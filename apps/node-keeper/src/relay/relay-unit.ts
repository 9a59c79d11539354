import { readFileSync } from 'node:fs';
import { checkTrust, parseEndpoint } from '@unbounded/relay-client';
import { z } from 'zod';

/**
 * What the agent asks of the relay's proxies, in one file. The agent is trusted no further than this schema; and what comes
 * from outside in it, addresses of relays, is all bounded.
 */

export const keySchema = z.string().regex(/^[A-Za-z0-9+/]{43}=$/, 'must be a WireGuard key in base64');
export const portSchema = z.int().min(1).max(65_535);

const isHost = (host: string): boolean => {
  try {
    return parseEndpoint(host.includes(':') ? `[${host}]` : host).host === host;
  } catch {
    return false;
  }
};
const host = z.string().max(253).refine(isHost, 'must be an address or a DNS name');
const way = z.strictObject({ host, port: portSchema, isTls: z.boolean(), serverName: host.exactOptional() });
const service = z.strictObject({
  name: z.string().min(1).max(512),
  ways: z.array(way).min(1).max(32),
  isBalanced: z.boolean().exactOptional(),
});

const MOST_CA_BYTES = 65_536;
/** It comes in this file, which only root reads, and not by arguments or the environment. */
const trust = z
  .strictObject({ caBundle: z.string().max(MOST_CA_BYTES).exactOptional(), staticKey: keySchema.exactOptional() })
  .check(({ value, issues }) => {
    try {
      checkTrust(value);
    } catch (error) {
      issues.push({ code: 'custom', message: (error as Error).message, input: value });
    }
  });

const once = (texts: readonly string[]): boolean => new Set(texts).size === texts.length;
const peer = z.strictObject({ publicKey: keySchema, wireGuardPort: portSchema });
const identity = z.strictObject({
  publicKey: keySchema,
  privateKeyFile: z.string().regex(/^\/etc\/wireguard\/[\w.-]+$/, 'must be a file in /etc/wireguard'),
  peers: z
    .array(peer)
    .max(10_000)
    .refine((peers) => once(peers.map(({ publicKey }) => publicKey)), 'has a peer twice'),
});
const unitSchema = z.strictObject({
  trust: trust.exactOptional(),
  services: z
    .array(service)
    .max(8)
    .refine((services) => once(services.map(({ name }) => name)), 'has a name twice'),
  identities: z
    .array(identity)
    .max(4)
    .refine((identities) => once(identities.map(({ publicKey }) => publicKey)), 'has an identity twice'),
});
export type RelayUnit = z.infer<typeof unitSchema>;
export type RelayIdentity = z.infer<typeof identity>;

const LARGEST_FILE = 16 << 20;

/** @throws Error that says what is wrong; with code ENOENT when there is no such file */
export const readRelayUnit = (file: string): RelayUnit => {
  const text = readFileSync(file, 'utf8');
  if (text.length > LARGEST_FILE) throw new Error(`${text.length} bytes are more than ${LARGEST_FILE}`);
  const unit = unitSchema.safeParse(JSON.parse(text));
  if (!unit.success) throw new Error(z.prettifyError(unit.error));
  return unit.data;
};
