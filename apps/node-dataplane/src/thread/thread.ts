import { Worker } from 'node:worker_threads';
import type { Logger } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';
import type { Scheduled } from './scheduling.ts';

/** A thread of the agent, from outside: calls with answers, and a new start when it ends. */
export interface AgentThread<Call> {
  /** @throws Error (rejects) when the thread cannot do it, or ends before it has answered */
  call(message: Call | StopCall): Promise<readonly Problem[]>;
  stop(): Promise<void>;
}

export interface StopCall {
  readonly type: 'stop';
}

/** How a thread answers a call. */
export type Answer =
  | { readonly type: 'done'; readonly id: number; readonly problems: readonly Problem[] }
  | { readonly type: 'failed'; readonly id: number; readonly error: string };

/** The first that a thread says. */
export type ScheduledThread = { readonly type: 'scheduled' } & Scheduled;

/** A call as the thread gets it. */
export type Numbered<Call> = Call & { readonly id: number };

export interface ThreadOptions<Told> {
  /** What it is called in messages and in the process list. */
  readonly name: string;
  /** What it does, for the log: 'the thread that probes'. */
  readonly what: string;
  readonly file: URL;
  /** What it is started with. */
  readonly settings: unknown;
  readonly logger: Logger;
  readonly onTold: (message: Told) => void;
  /** How soon it gets a processor. */
  readonly onScheduled?: (scheduled: Scheduled) => void;
  /** The thread had ended and is there again: it knows nothing. */
  readonly onRestart: () => void;
}

const RESTART_AFTER_MS = 1000;

export const startThread = <Call extends { readonly type: string }, Told extends { readonly type: string }>(
  options: ThreadOptions<Told>,
): AgentThread<Call> => {
  const { name, what, file, settings, logger, onTold, onRestart } = options;
  const waiting = new Map<number, PromiseWithResolvers<readonly Problem[]>>();
  let worker: Worker | undefined;
  let lastId = 0;
  let isStopping = false;
  let restart: NodeJS.Timeout | undefined;

  const onScheduled = (scheduled: Scheduled): void => {
    const { scheduling, error } = scheduled;
    if (scheduling === 'shared') logger.warn({ error }, `${what} has no priority: it is late where the node is busy`);
    else if (error) logger.warn({ error }, `${what} is not real-time: it may be late where the node is busy`);
    options.onScheduled?.(scheduled);
  };
  const isScheduled = (message: Told | ScheduledThread): message is ScheduledThread => message.type === 'scheduled';
  const onMessage = (message: Answer | Told | ScheduledThread): void => {
    if (!('id' in message)) return isScheduled(message) ? onScheduled(message) : onTold(message);
    const answer = message;
    const call = waiting.get(answer.id);
    waiting.delete(answer.id);
    if (answer.type === 'done') call?.resolve(answer.problems);
    else call?.reject(new Error(`${name}: ${answer.error}`));
  };
  const onExit = (): void => {
    worker = undefined;
    for (const call of waiting.values()) call.reject(new Error(`${name}: ${what} has ended`));
    waiting.clear();
    if (isStopping) return;
    logger.error(`${what} has ended; keeping current kernel state and restarting it`);
    restart = setTimeout(() => {
      start();
      onRestart();
    }, RESTART_AFTER_MS);
  };
  const start = (): void => {
    worker = new Worker(file, { name, workerData: settings });
    worker.on('message', onMessage);
    worker.on('error', (error) => logger.error({ err: error }, `${what} failed`));
    worker.on('exit', onExit);
  };
  const call: AgentThread<Call>['call'] = (message) => {
    if (!worker) return Promise.reject(new Error(`${name}: ${what} has ended and starts anew soon`));
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
