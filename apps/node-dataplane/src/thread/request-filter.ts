import { isNewer, type Newest } from '@unbounded/health';

/** After this long without requests older ones are taken again: the peer's clock may have gone back over a reboot. */
const FORGET_REQUESTS_MS = 30_000;

/** Which requests of a peer are new. */
export const createRequestFilter = (): ((request: Newest) => boolean) => {
  let newest: Newest | undefined;
  let heardMs = 0;
  return ({ nonce, sequence }) => {
    const now = performance.now();
    if (now - heardMs > FORGET_REQUESTS_MS) newest = undefined;
    if (!isNewer(newest, { nonce, sequence })) return false;
    newest = { nonce, sequence };
    heardMs = now;
    return true;
  };
};
