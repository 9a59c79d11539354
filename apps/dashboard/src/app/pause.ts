/** Ends early with the signal; whoever waits looks at that. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, signal.aborted ? 0 : ms);
    signal.addEventListener('abort', end);
  });
