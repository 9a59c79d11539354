import type { Forwarding } from '@unbounded/status';
import type { Logger } from '@unbounded/telemetry';
import { withDeadline } from '../deadline.ts';

/** Answers of what the node forwards by, read when the aggregator says that somebody waits for it. */
export interface ForwardingAnswers {
  /** Never waits, and never fails: whoever asked asks again. */
  wanted(): void;
  stop(): Promise<void>;
}

export interface ForwardingAnswersOptions {
  /** Undefined: there is nothing that could be read. */
  readonly read: () => Promise<Forwarding> | undefined;
  readonly send: (forwarding: Forwarding, signal: AbortSignal) => Promise<void>;
  readonly logger: Logger;
  /** Between the beginnings of two answers, at least, milliseconds: whatever an aggregator says, a node has other things to do. */
  readonly spacingMs?: number;
}

const SPACING_MS = 1000;
const DEADLINE_MS = 10_000;

export const createForwardingAnswers = (options: ForwardingAnswersOptions): ForwardingAnswers => {
  const { read, send, logger, spacingMs = SPACING_MS } = options;
  const stopping = new AbortController();
  let beganAtMs = -Infinity;
  let answering: Promise<void> | undefined;
  const readAndSend = async (signal: AbortSignal): Promise<void> => {
    const forwarding = await read();
    if (forwarding && !signal.aborted) await send(forwarding, signal);
  };
  const answer = async (): Promise<void> => {
    try {
      await withDeadline(readAndSend, { deadlineMs: DEADLINE_MS, stopping: stopping.signal });
    } catch (error) {
      if (!stopping.signal.aborted)
        logger.warn({ error: (error as Error).message }, 'cannot tell the aggregator what this node forwards by');
    }
  };
  return {
    wanted() {
      if (answering || stopping.signal.aborted || performance.now() - beganAtMs < spacingMs) return;
      beganAtMs = performance.now();
      answering = answer().finally(() => (answering = undefined));
    },
    async stop() {
      stopping.abort(new Error('the agent ends'));
      await answering;
    },
  };
};
