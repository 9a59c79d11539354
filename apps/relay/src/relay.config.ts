import { choice, type ConfigOf, duration, option, path, port, whole } from '@unbounded/config';
import { isIP } from 'node:net';
import { z } from 'zod';

import type { HostAndPort } from './links/links.ts';

/** `:3478`, `192.0.2.1:3478`, `[2001:db8::1]:3478`, `relay.example:3478`; undefined when it is none of these. */
const parseHostAndPort = (text: string): HostAndPort | undefined => {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]*)):([0-9]{1,5})$/.exec(text) ?? [];
  const number = Number(digits);
  if (digits === undefined || number > 65_535) return undefined;
  if (bracketed !== undefined && isIP(bracketed) !== 6) return undefined;
  return { host: bracketed ?? plain ?? '', port: number };
};

const ADDRESS = 'must be like :3478, 192.0.2.1:3478 or [2001:db8::1]:3478';

const address = (defaultValue: string): z.ZodType<HostAndPort> =>
  z
    .string()
    .optional()
    .transform((given) => parseHostAndPort(given ?? defaultValue)!)
    .refine((value) => value !== undefined, ADDRESS);

const optionalAddress: z.ZodType<HostAndPort | undefined> = z
  .string()
  .refine((given) => parseHostAndPort(given) !== undefined, ADDRESS)
  .transform((given) => parseHostAndPort(given)!)
  .optional();

const list = (given: string): string[] => given.split(',').filter(Boolean);

const peers: z.ZodType<readonly HostAndPort[]> = z
  .string()
  .optional()
  .refine(
    (given) => list(given ?? '').every((entry) => (parseHostAndPort(entry)?.host ?? '') !== ''),
    'must be HOST:PORT, several comma-separated',
  )
  .transform((given) => list(given ?? '').map((entry) => parseHostAndPort(entry)!));

const prefixes: z.ZodType<readonly string[]> = z
  .string()
  .optional()
  .refine(
    (given) => list(given ?? '').every((entry) => isIP(entry.split('/')[0]!) !== 0),
    'must be addresses or prefixes like 192.0.2.0/24, several comma-separated',
  )
  .transform((given) => list(given ?? ''));

const SIZE_UNITS: Readonly<Record<string, number>> = { '': 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

/** `65536`, `512KiB`, `256MiB`; the value is bytes. */
const size = (minBytes: number, defaultValue: string): z.ZodType<number> =>
  z
    .string()
    .optional()
    .transform((given) => {
      const [, amount, unit] = /^([0-9]+)(|KiB|MiB|GiB)$/.exec(given ?? defaultValue) ?? [];
      return amount === undefined ? Number.NaN : Number(amount) * SIZE_UNITS[unit!]!;
    })
    .refine((value) => value >= minBytes, `must be a size like 512KiB or 256MiB, at least ${minBytes} bytes`);

const MILLION = 1_000_000;

export const relayOptions = {
  addr: option(address(':3478'), 'TCP address for clients; TLS on the same port when a certificate is given.'),
  auth: option(
    choice(['off', 'prefer', 'require'], 'prefer'),
    'Proof of possession of keys. prefer: a proven registration is never superseded by an unproven one; require: unproven ones are refused.',
  ),
  allowedKeys: option(
    path,
    'File of the public keys that may be registered, one a line in base64; followed as it changes. Needs --auth require; not set: any.',
  ),
  keyFile: option(path, "The relay's own private key (as wg genkey prints it), which clients may pin; not set: none."),
  tlsCert: option(path, 'PEM file with the certificate chain; read again when it changes.'),
  tlsKey: option(path, 'PEM file with its private key.'),
  proxyProtocol: option(prefixes, 'Load balancers whose connections begin with a PROXY header, version 2.'),
  registerDeadline: option(duration('10s'), 'Time until a new connection has registered.'),
  proofDeadline: option(duration('5s'), 'Time from Register to Proof with --auth require.'),
  idleTimeout: option(duration('90s'), 'Idle time after which a connection is closed (three keepalives).'),
  writeTimeout: option(
    duration('10s'),
    'Time without progress after which a client that does not read is disconnected.',
  ),
  peerQueue: option(
    size(65_536, '512KiB'),
    'Size of the send queue of a client; beyond it the oldest packets are dropped.',
  ),
  queueMemory: option(size(1024 ** 2, '256MiB'), 'Size of all send queues together.'),
  maxBytesPerSecond: option(
    whole({ min: 0, max: 100_000 * MILLION }, 0),
    'Rate limit of a client, by backpressure: nothing is dropped. 0: no limit.',
  ),
  maxConnections: option(whole({ min: 1, max: MILLION }, 16_384), 'Maximum number of registered connections.'),
  maxPending: option(
    whole({ min: 16, max: MILLION }, 1024),
    'Maximum number of unregistered connections; beyond it the oldest of the address with the most is closed.',
  ),
  maxConnectionsPerAddress: option(
    whole({ min: 1, max: MILLION }, 1024),
    'Maximum number of connections of one address (IPv6: of one /64).',
  ),
  newConnectionsPerSecond: option(
    whole({ min: 1, max: MILLION }, 50),
    'Maximum rate of new connections of one address, with bursts of five times as many.',
  ),
  linkAddr: option(optionalAddress, 'TCP address for other replicas; not set: no links.'),
  linkPeers: option(peers, 'Other replicas, HOST:PORT; a name stands for all its addresses (a headless Service).'),
  linkSecretFile: option(path, 'File of the secret that all replicas share, 32 bytes or more.'),
  linkInterval: option(duration('10s'), 'Interval at which replicas are looked up.'),
  drainTime: option(duration('10s'), 'Time for clients to reconnect elsewhere after SIGTERM.'),
  healthPort: option(port(9994), 'TCP port of /healthz, /readyz and /metrics; 0 takes a free one.'),
  logLevel: option(choice(['trace', 'debug', 'info', 'warn', 'error'], 'info'), 'Lowest level that is logged.'),
} as const;

export type RelayConfig = ConfigOf<typeof relayOptions>;
