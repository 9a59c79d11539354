export const AT_ONCE = 16;

/** Runs the work of all of them, so many at once. */
export const someAtOnce = async <T>(
  all: Iterable<T>,
  atOnce: number,
  work: (one: T) => Promise<unknown>,
): Promise<void> => {
  const queue = Iterator.from(all);
  const worker = async (): Promise<void> => {
    for (const one of queue) await work(one);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
};
