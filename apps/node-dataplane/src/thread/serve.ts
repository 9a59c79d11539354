import { type MessagePort, parentPort } from 'node:worker_threads';
import type { Problem } from '@unbounded/topology';
import { scheduleWithinShare } from './realtime-share.ts';
import type { Scheduled, Wish } from './scheduling.ts';
import type { Answer, Numbered, ScheduledThread, StopCall } from './thread.ts';

/** A thread of the agent, from inside: takes calls one after the other, and tells the agent what happens. */
export interface ThreadService<Call> {
  /** Answers a call with problems; an error is the answer of one that cannot be done. */
  readonly handle: (call: Call) => Promise<readonly Problem[]>;
  /** Before an answer is sent: whoever waits for it knows then what was told before. */
  readonly flush?: () => void;
  /** Called every second. */
  readonly measure?: () => void;
  /** Gives up everything; the thread ends then. */
  readonly stop: () => Promise<void>;
}

const MEASURE_EVERY_MS = 1000;

/** Sends what nobody asked for. */
export const tell = (message: object): void => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
  (parentPort as MessagePort).postMessage(message);
};

/** @param wish how soon the thread gets a processor; without the privilege it shares it with everybody */
export const serveThread = <Call extends { readonly type: string }>(
  wish: Wish,
  { handle, flush, measure, stop }: ThreadService<Call>,
): void => {
  const port = parentPort as MessagePort;
  const tellScheduled = (scheduled: Scheduled): void =>
    tell({ type: 'scheduled', ...scheduled } satisfies ScheduledThread);
  const share = scheduleWithinShare(wish);
  tellScheduled(share.scheduled);
  const measuring = setInterval(() => {
    const changed = share.check();
    if (changed) tellScheduled(changed);
    measure?.();
  }, MEASURE_EVERY_MS);
  const isStop = (message: Numbered<Call | StopCall>): message is Numbered<StopCall> => message.type === 'stop';

  const obey = async (message: Numbered<Call | StopCall>): Promise<void> => {
    const { id } = message;
    if (!isStop(message)) {
      const problems = await handle(message);
      flush?.();
      return tell({ type: 'done', id, problems } satisfies Answer);
    }
    clearInterval(measuring);
    await stop();
    flush?.();
    tell({ type: 'done', id, problems: [] } satisfies Answer);
    port.close();
  };

  /** A call that comes while another is taken waits. */
  let obeying: Promise<void> = Promise.resolve();
  port.on('message', (message: Numbered<Call | StopCall>) => {
    obeying = obeying
      .then(() => obey(message))
      .catch((error: unknown) =>
        tell({ type: 'failed', id: message.id, error: (error as Error).message } satisfies Answer),
      );
  });
};
