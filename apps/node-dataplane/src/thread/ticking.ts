/**
 * Calls `tick` at steady intervals from a random point of the first on. Late calls are not made up for: between two there is at least half
 * an interval, so that what one asks can be answered before the next judges. Returns what ends that.
 */
export const startTicking = (intervalMs: () => number, tick: () => void): (() => void) => {
  let due = performance.now() + Math.random() * intervalMs();
  let timer: NodeJS.Timeout;
  let call: NodeJS.Immediate | undefined;
  const next = (): void => {
    // Timers run before sockets are read: what has arrived while this thread was held up must count first.
    call = setImmediate(tick);
    const [now, interval] = [performance.now(), intervalMs()];
    const isTooLate = now - due > interval / 2;
    due = (isTooLate ? now : due) + interval;
    timer = setTimeout(next, due - now);
  };
  timer = setTimeout(next, due - performance.now());
  return () => {
    clearTimeout(timer);
    clearImmediate(call);
  };
};
