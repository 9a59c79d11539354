/** Runs passes one at a time: on demand (many demands at once are one), and regularly to repair drift. */

export interface ReconcileLoop {
  /** Asks for a pass soon. */
  trigger(): void;
  /** Resolves when the running pass, if any, has ended; no further one starts. */
  stop(): Promise<void>;
}

export interface LoopOptions {
  /** One pass. Returns in how many milliseconds the next is due at the latest. */
  readonly pass: () => Promise<number>;
  /** Demands within this time after a pass wait and become one. */
  readonly quietMs: number;
  readonly onError: (error: Error) => void;
  /** Time to the next pass after one that threw. */
  readonly retryMs: number;
}

export const startReconcileLoop = ({ pass, quietMs, onError, retryMs }: LoopOptions): ReconcileLoop => {
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let demanded = false;
  let stopped = false;
  let lastEndMs = Number.NEGATIVE_INFINITY; // on a clock that only goes forward

  const plan = (delayMs: number): void => {
    clearTimeout(timer);
    if (!stopped) timer = setTimeout(start, delayMs);
  };
  const run = async (): Promise<void> => {
    demanded = false;
    let nextMs = retryMs;
    try {
      nextMs = await pass();
    } catch (error) {
      onError(error as Error);
    }
    lastEndMs = performance.now();
    running = undefined;
    plan(demanded ? quietMs : nextMs);
  };
  const start = (): void => {
    running ??= run();
  };
  plan(0);
  return {
    trigger() {
      demanded = true;
      if (!running) plan(Math.max(0, lastEndMs + quietMs - performance.now()));
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
};
