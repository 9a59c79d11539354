import { z } from 'zod';

/**
 * Readers that were built before this library, as they are in their commits: keepers refuse a field that they do not know. A keeper is
 * replaced only when its pod is deleted, so they read what agents of today write.
 */

const port = z.int().min(1).max(65_535);

/** d3a782d:apps/node-keeper/src/unit.ts; later ones have another pattern of keys. */
const tunnelUnitWith = (key: z.ZodType) =>
  z.strictObject({
    device: z.string().regex(/^wg[0-9]{1,5}$/),
    privateKeyFile: z.string().regex(/^\/etc\/wireguard\/[\w.-]+$/),
    listenPort: port,
    peers: z
      .array(
        z.strictObject({
          publicKey: key,
          endpoint: z.string().max(64).optional(),
          allowedIps: z.array(z.string().max(49)).max(65_536),
          persistentKeepaliveSeconds: z.int().min(0).max(65_535).optional(),
        }),
      )
      .max(10_000),
  });

const key = z.string().regex(/^[A-Za-z0-9+/]{43}=$/);
const strictKey = z.string().regex(/^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/);
const host = z.string().max(253);

/** d3a782d:apps/node-keeper/src/relay/relay-unit.ts */
const relayUnit = z.strictObject({
  services: z
    .array(
      z.strictObject({
        name: z.string().min(1).max(512),
        ways: z
          .array(z.strictObject({ host, port, isTls: z.boolean(), serverName: host.exactOptional() }))
          .min(1)
          .max(32),
        isBalanced: z.boolean().exactOptional(),
      }),
    )
    .max(8),
  identities: z
    .array(
      z.strictObject({
        publicKey: key,
        privateKeyFile: z.string().regex(/^\/etc\/wireguard\/[\w.-]+$/),
        peers: z.array(z.strictObject({ publicKey: key, wireGuardPort: port })).max(10_000),
      }),
    )
    .max(4),
});

/** 2b31e37: the last before the library. */
const relayUnitWithTrust = relayUnit.extend({
  trust: z
    .strictObject({ caBundle: z.string().max(65_536).exactOptional(), staticKey: key.exactOptional() })
    .exactOptional(),
});

export const formerKeepers = {
  d3a782d: { tunnelUnit: tunnelUnitWith(key), relayUnit },
  '2b31e37': { tunnelUnit: tunnelUnitWith(strictKey), relayUnit: relayUnitWithTrust },
} as const;

/** 2b31e37:apps/node-keeper/src/relay/relay-state.ts: a process that takes over the ports of the one before it. */
export const formerRelayState = z.strictObject({
  proxies: z.array(z.strictObject({ own: key, peer: key, wireGuardPort: port, port })).max(40_000),
  relays: z
    .array(z.strictObject({ name: z.string(), connected: z.boolean(), problem: z.string().exactOptional() }))
    .max(4096),
  trust: z.string().exactOptional(),
});

const counts = z.record(z.string().regex(/^\w{1,32}$/), z.number().nonnegative());
/** 2b31e37:apps/node-dataplane/src/connectivity/relay/metrics.ts */
export const formerTallies = z.object({
  frames: counts,
  bytes: counts,
  dropped: counts,
  connections: z.number().nonnegative(),
  rebinds: z.number().nonnegative(),
});
