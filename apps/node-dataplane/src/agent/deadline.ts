/** Also of work that does not listen to the signal. */
const untilAborted = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  return Promise.race([work, aborted.promise]).finally(() => signal.removeEventListener('abort', onAbort));
};

/** Work that has failed when it takes longer, or when `stopping` aborts, whether it listens to its signal or not. */
export const withDeadline = async <T>(
  work: (signal: AbortSignal) => Promise<T>,
  { deadlineMs, stopping }: { readonly deadlineMs: number; readonly stopping: AbortSignal },
): Promise<T> => {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new Error(`no answer within ${deadlineMs / 1000} s`)), deadlineMs);
  const signal = AbortSignal.any([stopping, late.signal]);
  try {
    return await untilAborted(work(signal), signal);
  } finally {
    clearTimeout(timer);
  }
};
