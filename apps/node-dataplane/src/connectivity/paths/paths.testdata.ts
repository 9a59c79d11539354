import { join } from 'node:path';
import { STATE_FOLDER } from '@unbounded/config/ownership';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import { createPaths, type Paths } from './paths.ts';

/** The paths of a node without a relay. */
export const noPaths = (): Paths =>
  createPaths({
    nonceFile: join(STATE_FOLDER, 'path-nonce'),
    relays: { endpointOf: () => undefined, isUp: () => false },
    keyOf: () => undefined,
    now: Date.now,
    logger: silentLogger,
    metrics: createMetrics(),
    onChange: () => undefined,
  });
