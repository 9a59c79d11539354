/** What a reconcile says about its key. A thrown error means "unexpected": the key comes back after a growing delay. */
export type Verdict =
  | { readonly kind: 'done' }
  /** Come back after this time even if nothing changes. */
  | { readonly kind: 'again'; readonly afterMs: number }
  /** The input is wrong; only a change of it helps. */
  | { readonly kind: 'reject'; readonly reason: string };

export const done: Verdict = { kind: 'done' };
export const again = (afterMs: number): Verdict => ({ kind: 'again', afterMs });
export const reject = (reason: string): Verdict => ({ kind: 'reject', reason });
