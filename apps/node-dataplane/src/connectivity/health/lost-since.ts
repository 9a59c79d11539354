import type { Lost, PeerState } from '@unbounded/health';

/** Since when what is sent to a peer, or through it, is missed. */
export interface LostSince {
  /** Before each is sent: the first one that is missed is the last one that was sent in state Healthy. */
  sending(state: PeerState): void;
  of(settings: { readonly intervalMs: number; readonly detectMultiplier: number }): Lost;
}

/** @param lostMs as if something had been sent then; -Infinity: it was missed before this process began */
export const createLostSince = (lostMs = -Infinity): LostSince => {
  let sinceMs = lostMs;
  return {
    sending(state) {
      if (state === 'Healthy') sinceMs = performance.now();
    },
    of: ({ intervalMs, detectMultiplier }) => ({ sinceMs, detectMs: intervalMs * detectMultiplier }),
  };
};
