import { Worker } from 'node:worker_threads';
import type { Logger } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';
import type { FromWorker, ToWorker, WorkerSettings } from './messages.ts';

/** The thread that probes, from outside: calls with answers, and a new start when it ends. */
export interface ProbeThread {
  /** @throws Error (rejects) when the thread cannot do it, or ends before it has answered */
  call(message: Call): Promise<readonly Problem[]>;
  stop(): Promise<void>;
}

type Without<M> = M extends unknown ? Omit<M, 'id'> : never;
export type Call = Without<ToWorker>;
type Told = Exclude<FromWorker, { readonly id: number }>;

export interface ThreadOptions {
  readonly settings: WorkerSettings;
  readonly logger: Logger;
  readonly onTold: (message: Told) => void;
  /** The thread had ended and is there again: it knows nothing. */
  readonly onRestart: () => void;
}

/** In the checkout the source itself, in the image the bundle beside the agent's. */
const file = new URL(import.meta.url.endsWith('.ts') ? './health.worker.ts' : './health.worker.mjs', import.meta.url);
const RESTART_AFTER_MS = 1000;

export const startProbeThread = ({ settings, logger, onTold, onRestart }: ThreadOptions): ProbeThread => {
  const waiting = new Map<number, PromiseWithResolvers<readonly Problem[]>>();
  let worker: Worker | undefined;
  let lastId = 0;
  let isStopping = false;
  let restart: NodeJS.Timeout | undefined;

  const onMessage = (message: FromWorker): void => {
    if (!('id' in message)) return onTold(message);
    const call = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.type === 'done') call?.resolve(message.problems);
    else call?.reject(new Error(`health: ${message.error}`));
  };
  const onExit = (): void => {
    worker = undefined;
    for (const call of waiting.values()) call.reject(new Error('health: the thread that probes has ended'));
    waiting.clear();
    if (isStopping) return;
    logger.error('the thread that probes has ended; what the kernel holds stays, and it is started anew');
    restart = setTimeout(() => {
      start();
      onRestart();
    }, RESTART_AFTER_MS);
  };
  const start = (): void => {
    worker = new Worker(file, { name: 'health', workerData: settings });
    worker.on('message', onMessage);
    worker.on('error', (error) => logger.error({ err: error }, 'the thread that probes failed'));
    worker.on('exit', onExit);
  };
  const call: ProbeThread['call'] = (message) => {
    if (!worker) return Promise.reject(new Error('health: the thread that probes has ended and starts anew soon'));
    const id = ++lastId;
    const answer = Promise.withResolvers<readonly Problem[]>();
    waiting.set(id, answer);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    worker.postMessage({ ...message, id });
    return answer.promise;
  };
  start();

  return {
    call,
    async stop() {
      isStopping = true;
      clearTimeout(restart);
      if (!worker) return;
      const { promise: ended, resolve } = Promise.withResolvers<void>();
      worker.once('exit', () => resolve());
      await call({ type: 'stop' }).catch(() => undefined);
      await ended;
    },
  };
};
