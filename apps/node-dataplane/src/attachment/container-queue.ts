/**
 * Work on one container at a time, in the order in which it was asked for: DEL never overtakes ADD. Containers do not wait for one
 * another.
 */
export interface ContainerQueue {
  run<T>(containerId: string, work: () => Promise<T>): Promise<T>;
}

export const createContainerQueue = (): ContainerQueue => {
  const last = new Map<string, Promise<unknown>>();
  return {
    run(containerId, work) {
      const result = (last.get(containerId) ?? Promise.resolve()).then(work);
      const settled = result.then(
        () => undefined,
        () => undefined,
      );
      last.set(containerId, settled);
      void settled.then(() => {
        if (last.get(containerId) === settled) last.delete(containerId);
      });
      return result;
    },
  };
};
