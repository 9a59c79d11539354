import { backoffDelay, type BackoffOptions } from '@unbounded/controller-runtime';
import type { Logger } from '@unbounded/telemetry';
import type { SectionReport } from '../section.port.ts';
import { withDeadline } from '../deadline.ts';

/**
 * The writes of one section, apart from those of others and from what is written of the Node. A write shows others that the section
 * works, so none is kept for later: one that comes while another is under way or has failed is dropped, and the section is asked
 * for a new report when its turn has come. A section that hangs gives none, and so writes nothing.
 */
export interface WriteLoop {
  /** Never waits. @param write of a new report; undefined: the section has nothing to write */
  submit(write: SectionReport['write']): void;
  /** Gives up what is under way. */
  stop(): Promise<void>;
}

export interface WriteLoopOptions {
  readonly section: string;
  /** Asks the section for a new report. */
  readonly trigger: () => void;
  /** When it changes. Undefined: the last write succeeded. */
  readonly onError: (message: string | undefined) => void;
  readonly logger: Logger;
  /** A write that takes longer has failed, milliseconds. */
  readonly deadlineMs?: number;
  readonly backoff?: BackoffOptions;
}

const DEADLINE_MS = 10_000;
const BACKOFF: BackoffOptions = { baseMs: 1000, maxMs: 30_000 };

export const createWriteLoop = (options: WriteLoopOptions): WriteLoop => {
  const { section, trigger, onError, logger, deadlineMs = DEADLINE_MS, backoff = BACKOFF } = options;
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let failures = 0;
  let isMissed = false;
  let known: string | undefined;

  const settle = (message: string | undefined): void => {
    if (message === known || stopping.signal.aborted) return;
    known = message;
    if (message === undefined) logger.info({ section }, 'writes of the section succeed again');
    else logger.warn({ section, error: message }, 'cannot write what the section reports; forwarding continues');
    onError(message);
  };
  const retryLater = (): void => {
    const delayMs = backoffDelay(failures, backoff);
    timer = setTimeout(() => {
      timer = undefined;
      trigger();
    }, delayMs);
  };
  const run = async (write: NonNullable<SectionReport['write']>): Promise<void> => {
    isMissed = false;
    try {
      await withDeadline(write, { deadlineMs, stopping: stopping.signal });
      failures = 0;
      settle(undefined);
      if (isMissed) trigger();
    } catch (error) {
      failures++;
      settle((error as Error).message);
      if (!stopping.signal.aborted) retryLater();
    } finally {
      running = undefined;
    }
  };

  return {
    submit(write) {
      if (stopping.signal.aborted) return;
      if (running || timer) isMissed = true;
      else if (write) running = run(write);
      else settle(undefined);
    },
    async stop() {
      stopping.abort(new Error('the agent ends'));
      clearTimeout(timer);
      await running;
    },
  };
};
