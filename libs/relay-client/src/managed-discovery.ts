import { type Logger, silentLogger } from '@unbounded/telemetry';

import { reconnectDelay } from './backoff.ts';
import { type Clock, systemClock, type Timer } from './clock.ts';
import { type ManagedRelay, managedServices } from './discovery.ts';
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
  readonly #options: Required<ManagedDiscoveryOptions>;
  #timer: Timer | undefined;
  #failures = 0;
  #known: string | undefined;
  #isStopped = false;

  constructor(options: ManagedDiscoveryOptions) {
    this.#options = { clock: systemClock, random: Math.random, logger: silentLogger, ...options };
  }

  start(): void {
    void this.#look();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #look(): Promise<void> {
    const { read, onServices, clock, random, logger } = this.#options;
    let services: readonly RelayService[] = [];
    let reason = 'the Service has no address that can be reached from outside';
    try {
      services = managedServices(await read());
    } catch (error) {
      reason = (error as Error).message;
    }
    if (this.#isStopped) return;
    if (services.length === 0) {
      this.#failures++;
      logger.info({ failures: this.#failures, reason }, 'no way to the managed relay yet');
    } else {
      this.#failures = 0;
      const text = JSON.stringify(services);
      if (text !== this.#known) onServices(services);
      this.#known = text;
    }
    const delay = this.#known === undefined ? reconnectDelay(this.#failures, random) : AGAIN_MS;
    this.#timer = clock.after(delay, () => void this.#look());
  }
}
