import { useCallback, useSyncExternalStore } from 'react';
import { type Address, formatAddress, parseAddress, withQuery } from '../view/address.ts';

/** The address bar. Each hash is parsed once, so that it is the same object as long as it is the same address. */

let parsed: { readonly hash: string; readonly address: Address } | undefined;
const current = (): Address => {
  const { hash } = globalThis.location;
  if (parsed?.hash !== hash) parsed = { hash, address: parseAddress(hash) };
  return parsed.address;
};

const listeners = new Set<() => void>();
const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  for (const event of ['hashchange', 'popstate']) globalThis.addEventListener(event, listener);
  return () => {
    listeners.delete(listener);
    for (const event of ['hashchange', 'popstate']) globalThis.removeEventListener(event, listener);
  };
};

export const useAddress = (): Address => useSyncExternalStore(subscribe, current);

type Query = Readonly<Record<string, string | undefined>>;

/** The query, and what changes it: without an entry in the history for each letter that is typed. */
export const useQuery = (): readonly [query: Query, change: (change: Query) => void] => {
  const { query } = useAddress();
  const change = useCallback((change: Query) => {
    globalThis.history.replaceState(null, '', formatAddress(withQuery(current(), change)));
    for (const listener of listeners) listener();
  }, []);
  return [query, change];
};
