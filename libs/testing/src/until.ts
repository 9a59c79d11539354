import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 25;

/**
 * The first value that is not undefined or false; asks until then. Errors of `probe` count as "not yet", the last one is
 * the cause of the failure. Only a defect makes it wait in full: processes start in 20 s on a machine that is busy.
 * @throws Error after `timeoutMs`, naming `what`
 */
export const until = async <T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  timeoutMs = 45_000,
): Promise<T> => {
  const deadline = performance.now() + timeoutMs;
  let cause: unknown;
  do {
    try {
      const value = await probe();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      cause = error;
    }
    await sleep(POLL_MS);
  } while (performance.now() < deadline);
  throw new Error(`not within ${timeoutMs} ms: ${what}`, { cause });
};
