import { withDeadline } from '../deadline.ts';
import { HookError } from './pod-network.ts';

/** One call of a section's hook, within its time. */

export interface HookCall<T> {
  /** Rejects with HookError also where the hook does not listen to the signal. */
  readonly answer: Promise<T>;
  /** When the hook has really come to an end, whatever that is; never rejects. */
  readonly settled: Promise<void>;
}

export const callHook = <T>(
  { section, timeoutMs }: { readonly section: string; readonly timeoutMs: number },
  run: (signal: AbortSignal) => Promise<T>,
): HookCall<T> => {
  const settled = Promise.withResolvers<void>();
  const answer = withDeadline(
    async (signal) => {
      try {
        return await run(signal);
      } finally {
        settled.resolve();
      }
    },
    { deadlineMs: timeoutMs, message: `no answer within ${timeoutMs} ms` },
  ).catch((error: unknown) => {
    throw new HookError(`section ${section}: ${(error as Error).message}`);
  });
  return { answer, settled: settled.promise };
};

/** Resolves to whether all have settled within the time. */
export const settleWithin = (all: readonly Promise<void>[], withinMs: number): Promise<boolean> =>
  withDeadline(() => Promise.all(all), { deadlineMs: withinMs }).then(
    () => true,
    () => false,
  );
