import type { KubeObject } from '@unbounded/kube';
import type { Logger } from '@unbounded/telemetry';

import type { Controller } from './controller.ts';
import type { Informer } from './informer.ts';
import type { Election } from './leader-election.ts';

export interface ManagerOptions {
  readonly informers: readonly Pick<Informer<KubeObject>, 'name' | 'isSynced' | 'synced' | 'lostAtMs' | 'run'>[];
  readonly controllers: readonly Controller[];
  /** Not set: we are the only replica. */
  readonly election?: Election | undefined;
  /** Runs when the work has ended, because another replica leads or because of `stop`. */
  readonly afterWork?: () => void;
  readonly logger: Logger;
}

/** Starts and stops the parts of a controller process in order: caches, election, workers. */
export interface Manager {
  /** Returns at once; see `isReady`. */
  start(): void;
  /** All caches are filled; a follower is ready too. */
  readonly isReady: boolean;
  /** Since when one of the caches cannot be renewed, elapsed ms (performance.now); undefined: all are followed. */
  readonly lostAtMs: number | undefined;
  /** Stops the workers, waits for running reconciles, releases the Lease, stops the caches. */
  stop(): Promise<void>;
  /** Rejects if a part ends that must not; never resolves. */
  readonly failed: Promise<never>;
}

export const createManager = ({ informers, controllers, election, afterWork, logger }: ManagerOptions): Manager => {
  const workers = new AbortController();
  const caches = new AbortController();
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined); // a manager that nobody asks must not end the process
  let running: Promise<void> = Promise.resolve();
  let following: Promise<unknown> = Promise.resolve();

  const work = async (signal: AbortSignal): Promise<void> => {
    await Promise.all(controllers.map((controller) => controller.run(signal)));
    afterWork?.();
  };

  const run = async (): Promise<void> => {
    const stopped = new Promise<void>((resolve) =>
      workers.signal.addEventListener('abort', () => resolve(), { once: true }),
    );
    await Promise.race([Promise.all(informers.map(({ synced }) => synced)), stopped]);
    if (workers.signal.aborted) return;
    logger.info({ caches: informers.map(({ name }) => name) }, 'caches are filled');
    await (election ? election.run(workers.signal, work) : work(workers.signal));
  };

  return {
    start: () => {
      following = Promise.all(informers.map((informer) => informer.run(caches.signal))).catch(failure.reject);
      running = run().catch((error: unknown) => {
        if (!workers.signal.aborted) failure.reject(error);
      });
    },
    get isReady() {
      return informers.every(({ isSynced }) => isSynced);
    },
    get lostAtMs() {
      const all = informers.flatMap(({ lostAtMs }) => lostAtMs ?? []);
      return all.length === 0 ? undefined : Math.min(...all);
    },
    stop: async () => {
      workers.abort();
      await running;
      caches.abort();
      await following;
    },
    failed: failure.promise,
  };
};
