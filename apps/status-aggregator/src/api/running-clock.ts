/**
 * Time in which this program ran, in milliseconds. While it does not (a suspended machine, a long collection of garbage), what clients take
 * and answer waits in the kernel, and timers fire before it is read: that is no silence of the clients.
 */
export interface RunningClock {
  readonly now: () => number;
  /** Called every `tickMs`; a gap between two calls counts as no more than two of them. */
  tick(): void;
}

export const createRunningClock = (tickMs: number, elapsed: () => number = () => performance.now()): RunningClock => {
  let ranMs = 0;
  let tickedAt = elapsed();
  const ranAt = (at: number): number => ranMs + Math.min(at - tickedAt, 2 * tickMs);
  return {
    now: () => ranAt(elapsed()),
    tick() {
      const at = elapsed();
      ranMs = ranAt(at);
      tickedAt = at;
    },
  };
};
