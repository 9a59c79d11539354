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
  const late = Promise.withResolvers<never>();
  const abort = new AbortController();
  const timer = setTimeout(() => {
    const error = new Error(`no answer within ${timeoutMs} ms`);
    abort.abort(error);
    late.reject(error);
  }, timeoutMs);
  const attempt = (async () => run(abort.signal))();
  const answer = Promise.race([attempt, late.promise])
    .catch((error: unknown) => {
      throw new HookError(`section ${section}: ${(error as Error).message}`);
    })
    .finally(() => clearTimeout(timer));
  const settled = attempt.then(
    () => undefined,
    () => undefined,
  );
  return { answer, settled };
};

/** Resolves to whether all have settled within the time. */
export const settleWithin = async (all: readonly Promise<void>[], withinMs: number): Promise<boolean> => {
  const late = Promise.withResolvers<false>();
  const timer = setTimeout(() => late.resolve(false), withinMs);
  return await Promise.race([Promise.all(all).then(() => true), late.promise]).finally(() => clearTimeout(timer));
};
