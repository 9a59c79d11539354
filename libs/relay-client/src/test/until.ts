import { setTimeout as sleep } from 'node:timers/promises';

/** Resolves when the condition holds, which is looked at every few milliseconds. @throws Error */
export const until = async (what: string, condition: () => boolean, withinMs = 30_000): Promise<void> => {
  const end = performance.now() + withinMs;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`);
    await sleep(3);
  }
};
