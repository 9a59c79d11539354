import type { ClusterView } from '@unbounded/status';
import { useSyncExternalStore } from 'react';
import { StreamClient } from '../stream/stream-client.ts';
import type { StreamState } from '../stream/stream-state.ts';
import { checkPosition, connectStream } from './api.ts';
import { forgetToken, keepToken, keptToken } from './token.ts';

/** Who looks, and what of the view has come: one for the page. */
export interface Session {
  readonly token?: string;
  readonly stream?: StreamState;
  /** Why there is no token any more. */
  readonly farewell?: string;
}

let session: Session = {};
let client: StreamClient | undefined;
const listeners = new Set<() => void>();

const set = (next: Session): void => {
  session = next;
  for (const listener of listeners) listener();
};

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

export const signOut = (farewell?: string): void => {
  client?.stop();
  client = undefined;
  forgetToken();
  set(farewell === undefined ? {} : { farewell });
};

const clock = {
  now: () => performance.now(),
  after: (ms: number, run: () => void) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

export const signIn = (token: string): void => {
  client?.stop();
  keepToken(token);
  const next = new StreamClient({
    clock,
    random: Math.random,
    connect: connectStream(token),
    check: checkPosition(token),
    onState: (stream) => {
      if (client !== next) return;
      if (stream.phase === 'ended') signOut(stream.reason ?? '');
      else set({ token, stream });
    },
  });
  client = next;
  next.start();
};

/** Once, when the page is loaded. */
export const startSession = (): void => {
  const token = keptToken();
  if (token !== undefined) signIn(token);
  const wake = (): void => client?.wake();
  globalThis.addEventListener('online', wake);
  globalThis.addEventListener('pageshow', wake);
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') wake();
  });
};

export const useSession = (): Session => useSyncExternalStore(subscribe, () => session);

/** A part of the view; drawn anew when that part is another object. */
export const useView = <T>(select: (view: ClusterView) => T): T =>
  useSyncExternalStore(subscribe, () => select(session.stream!.view!));
