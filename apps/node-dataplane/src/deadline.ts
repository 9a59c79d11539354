/** Also of work that does not listen to the signal. */
const untilAborted = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  return Promise.race([work, aborted.promise]).finally(() => signal.removeEventListener('abort', onAbort));
};

export interface Deadline {
  readonly deadlineMs: number;
  /** Ends the work before; not set: nothing does. */
  readonly stopping?: AbortSignal;
  /** Of the error of work that takes longer. */
  readonly message?: string;
}

/** Work that has failed when it takes longer, or when `stopping` aborts, whether it listens to its signal or not. It begins at once. */
export const withDeadline = async <T>(
  work: (signal: AbortSignal) => Promise<T>,
  { deadlineMs, stopping, message = `no answer within ${deadlineMs / 1000} s` }: Deadline,
): Promise<T> => {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new Error(message)), deadlineMs);
  const signal = stopping ? AbortSignal.any([stopping, late.signal]) : late.signal;
  try {
    return await untilAborted(work(signal), signal);
  } finally {
    clearTimeout(timer);
  }
};
