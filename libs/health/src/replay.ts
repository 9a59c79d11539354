/** Which packets count once only. */

/** The newest request that came from a peer. */
export interface Newest {
  readonly nonce: bigint;
  readonly sequence: bigint;
}

/** Whether a request is newer than all before it: a copy of an old one is not answered. */
export const isNewer = (seen: Newest | undefined, { nonce, sequence }: Newest): boolean =>
  seen === undefined || nonce > seen.nonce || (nonce === seen.nonce && sequence > seen.sequence);

/** Requests without a reply yet, oldest forgotten first: a reply counts once, and only for a request that was sent. */
export interface Outstanding<T> {
  add(sequence: bigint, request: T): void;
  /** What was sent with this number and not answered yet; it goes on waiting. */
  get(sequence: bigint): T | undefined;
  /** What was sent with this number; undefined when nothing was, or it is answered already. */
  take(sequence: bigint): T | undefined;
  readonly size: number;
}

/** @param limit how many are remembered: with 64, replies may be late by 64 intervals */
export const createOutstanding = <T>(limit = 64): Outstanding<T> => {
  const sent = new Map<bigint, T>();
  return {
    add(sequence, request) {
      sent.set(sequence, request);
      if (sent.size > limit) sent.delete(sent.keys().next().value!);
    },
    get: (sequence) => sent.get(sequence),
    take(sequence) {
      const request = sent.get(sequence);
      sent.delete(sequence);
      return request;
    },
    get size() {
      return sent.size;
    },
  };
};
