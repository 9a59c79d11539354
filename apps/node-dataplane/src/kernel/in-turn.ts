/** Runs what it is given one at a time, in the order in which it was given: what is read, compared and written must not change meanwhile. */
export const createQueue = () => {
  let last: Promise<unknown> = Promise.resolve();
  return <T>(work: () => Promise<T>): Promise<T> => {
    const result = last.then(work);
    last = result.catch(() => undefined);
    return result;
  };
};

/** The same for each key; work of different keys goes side by side. */
export const createKeyedQueue = () => {
  const ends = new Map<string, Promise<unknown>>();
  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const result = (ends.get(key) ?? Promise.resolve()).then(work);
    const end = result.catch(() => undefined);
    ends.set(key, end);
    try {
      return await result;
    } finally {
      if (ends.get(key) === end) ends.delete(key);
    }
  };
};
