import type { Logger } from '@unbounded/telemetry';

/** The same failure of the same subject is logged again after this: a keeper looks ten times a second. */
const AGAIN_MS = 300_000;

/** Runs work for a subject; its failure is logged, and keeps nobody else. */
export type TryTo = (subject: string, nowMs: number, work: () => Promise<unknown>) => Promise<void>;

/** @param kind name of the subject's field in the log */
export const createTryTo = (logger: Logger, kind: 'pod' | 'process'): TryTo => {
  const logged = new Map<string, { readonly message: string; readonly atMs: number }>();
  return async (subject, nowMs, work) => {
    try {
      await work();
    } catch (error) {
      const { message } = error as Error;
      const last = logged.get(subject);
      if (last?.message === message && nowMs - last.atMs < AGAIN_MS) return;
      // Of subjects that are gone nothing is kept.
      for (const [other, { atMs }] of logged) if (nowMs - atMs >= AGAIN_MS) logged.delete(other);
      logged.set(subject, { message, atMs: nowMs });
      logger.error({ [kind]: subject, error: message }, 'cannot tend the unit');
    }
  };
};
