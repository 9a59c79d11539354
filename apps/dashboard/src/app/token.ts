/** The token stays in this tab: in memory, and in sessionStorage so that it outlives a reload. */

const KEY = 'unbounded-status-token';

const storage = (): Storage | undefined => {
  try {
    return globalThis.sessionStorage;
  } catch {
    return undefined; // a browser may forbid it: memory does
  }
};

export const keptToken = (): string | undefined => storage()?.getItem(KEY) ?? undefined;
export const keepToken = (token: string): void => storage()?.setItem(KEY, token);
export const forgetToken = (): void => storage()?.removeItem(KEY);
