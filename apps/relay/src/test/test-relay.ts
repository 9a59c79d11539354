import { silentLogger } from '@unbounded/telemetry';

import { Relay, type RelayOptions } from '../relay.ts';

/** A relay on a free port of 127.0.0.1, with the defaults of its flags but for what is given. */
export const startRelay = async (options: Partial<RelayOptions> = {}): Promise<Relay & AsyncDisposable> => {
  const relay = new Relay({
    listen: { host: '127.0.0.1', port: 0 },
    auth: 'prefer',
    registerDeadlineMs: 10_000,
    proofDeadlineMs: 5000,
    idleTimeoutMs: 90_000,
    writeTimeoutMs: 10_000,
    queueBytes: 512 * 1024,
    memoryBytes: 256 * 1024 * 1024,
    bytesPerSecond: 0,
    maxConnections: 16_384,
    maxPending: 1024,
    maxConnectionsPerAddress: 1024,
    newConnectionsPerSecond: 1000,
    staticKey: undefined,
    allowed: undefined,
    secureContext: () => undefined,
    isProxy: () => false,
    links: undefined,
    queueAge: () => {},
    logger: silentLogger,
    ...options,
  });
  await relay.start();
  return Object.assign(relay, { [Symbol.asyncDispose]: () => Promise.resolve(relay.stop()) });
};
