export interface Timer {
  cancel(): void;
}

/** Time as the clients need it: tests give their own. */
export interface Clock {
  /** Milliseconds; never goes back. */
  now(): number;
  after(ms: number, run: () => void): Timer;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return { cancel: () => clearTimeout(timer) };
  },
};
