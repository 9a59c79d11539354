/** How one of many is loaded. */
interface LoadEach<T> {
  readonly load: (name: string, signal: AbortSignal) => Promise<T>;
  /** Each as it comes; not after the end. */
  readonly onLoaded: (name: string, loaded: T) => void;
  readonly signal: AbortSignal;
  readonly mostAtOnce: number;
}

/** Loads all of them, so many at once; ends with the signal. */
export const loadEach = async <T>(
  names: readonly string[],
  { load, onLoaded, signal, mostAtOnce }: LoadEach<T>,
): Promise<void> => {
  const queue = names.values();
  const work = async (): Promise<void> => {
    for (const name of queue) {
      if (signal.aborted) return;
      const loaded = await load(name, signal);
      if (!signal.aborted) onLoaded(name, loaded);
    }
  };
  await Promise.all(Array.from({ length: mostAtOnce }, work));
};
