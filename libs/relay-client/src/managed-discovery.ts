import { type Logger, silentLogger } from '@unbounded/telemetry';

import { type Clock, systemClock } from './clock.ts';
import { type ManagedRelay, managedServices } from './discovery.ts';
import { Lookout } from './lookout.ts';
import type { RelayService } from './relay-set.ts';

/** How often objects are read again once a way is known. */
const AGAIN_MS = 30_000;

export interface ManagedDiscoveryOptions {
  /** Reads the Service and the nodes; may reject. */
  readonly read: () => Promise<ManagedRelay>;
  /** The services are these now; usually the pool's `setServices`. Not called when nothing has changed. */
  readonly onServices: (services: readonly RelayService[]) => void;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly logger?: Logger;
}

/**
 * Looks for the managed relay, 1 s to 30 s apart until there is a way to it. What has been found stays until there is
 * something else: a Service that is away for a moment, or an API server that cannot be reached, cuts nobody off.
 */
export class ManagedDiscovery {
  readonly #lookout: Lookout<RelayService>;

  constructor(options: ManagedDiscoveryOptions) {
    const { read, onServices, clock = systemClock, random = Math.random, logger = silentLogger } = options;
    this.#lookout = new Lookout({
      clock,
      random,
      againMs: AGAIN_MS,
      textOf: (services) => JSON.stringify(services),
      onFound: onServices,
      onFailure: (failures, reason = 'the Service has no address that can be reached from outside') =>
        logger.info({ failures, reason }, 'managed relay not found yet'),
      async look() {
        try {
          return managedServices(await read());
        } catch (error) {
          return (error as Error).message;
        }
      },
    });
  }

  start(): void {
    this.#lookout.start();
  }

  /** What is read may be another: does not wait for its time. */
  lookAgain(): void {
    this.#lookout.lookAgain();
  }

  stop(): void {
    this.#lookout.stop();
  }
}
