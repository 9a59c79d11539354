import type { Logger } from '@unbounded/telemetry';
import { backoffDelay, type BackoffOptions } from '@unbounded/controller-runtime';
import type { AgentReport, Reporter } from '../world/reporter.port.ts';
import { withDeadline } from '../deadline.ts';

/**
 * Reports apart from the passes: an API server that is slow, overloaded or swallows packets delays no repair of the kernel.
 * Only the latest state waits; a report that takes too long is given up and repeated, ever more rarely.
 */
export interface ReportLoop {
  /** Never waits. A report that has not begun is replaced; its events, which are told once, are kept. */
  submit(report: AgentReport): void;
  /** Gives up what is under way. */
  stop(): Promise<void>;
}

export interface ReportLoopOptions {
  readonly reporter: Reporter;
  readonly logger: Logger;
  /** A report that takes longer has failed, milliseconds. */
  readonly deadlineMs?: number;
  readonly backoff?: BackoffOptions;
}

const DEADLINE_MS = 10_000;
const BACKOFF: BackoffOptions = { baseMs: 1000, maxMs: 30_000 };
/** Of what is told once and waits: older ones are of no interest. */
const MOST_EVENTS = 50;

const latest = (older: AgentReport | undefined, newer: AgentReport | undefined): AgentReport | undefined => {
  if (!older || !newer) return newer ?? older;
  return { ...newer, events: [...older.events, ...newer.events].slice(-MOST_EVENTS) };
};

export const createReportLoop = (options: ReportLoopOptions): ReportLoop => {
  const { reporter, logger, deadlineMs = DEADLINE_MS, backoff = BACKOFF } = options;
  const stopping = new AbortController();
  let waiting: AgentReport | undefined;
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let failures = 0;

  const send = async (report: AgentReport): Promise<void> => {
    try {
      await withDeadline((signal) => reporter.report(report, signal), { deadlineMs, stopping: stopping.signal });
      if (failures > 0) logger.info('reports are written again');
      failures = 0;
    } catch (error) {
      failures++;
      waiting = latest({ ...report, events: [] }, waiting) ?? report;
      if (stopping.signal.aborted) return;
      logger.warn({ error: (error as Error).message, failures }, 'cannot write the report; forwarding continues');
      timer = setTimeout(
        () => {
          timer = undefined;
          start();
        },
        backoffDelay(failures, backoff),
      );
    }
  };
  const drain = async (): Promise<void> => {
    while (waiting && !timer && !stopping.signal.aborted) {
      const report = waiting;
      waiting = undefined;
      await send(report);
    }
    running = undefined;
  };
  const start = (): void => {
    if (!timer) running ??= drain();
  };

  return {
    submit(report) {
      waiting = latest(waiting, report);
      start();
    },
    async stop() {
      stopping.abort(new Error('the agent ends'));
      clearTimeout(timer);
      await running;
    },
  };
};
