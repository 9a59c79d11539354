/** What is asked for many times at once is done once, a little later. */
export const gathered = (
  act: () => void,
  withinMs: number,
): { readonly ask: () => void; readonly stop: () => void } => {
  let timer: NodeJS.Timeout | undefined;
  return {
    ask() {
      timer ??= setTimeout(() => {
        timer = undefined;
        act();
      }, withinMs).unref();
    },
    stop() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
};
