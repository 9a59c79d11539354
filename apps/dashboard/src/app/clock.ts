import { useSyncExternalStore } from 'react';

/** Time for what is shown. Ages are drawn anew every second by their own components, and nothing else is. */

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let elapsed = performance.now();

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  timer ??= setInterval(() => {
    elapsed = performance.now();
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
};

/** What is made of the elapsed time is the same until it changes: only then is the component drawn anew. */
export const useElapsed = <T extends string | number | boolean>(make: (elapsedMs: number) => T): T =>
  useSyncExternalStore(subscribe, () => make(elapsed));

/** For what states a time itself. */
export const wallClock = (): number => Date.now();
