import { randomBytes } from 'node:crypto';
import { TOKEN_BYTES } from '@unbounded/health';

/** As many are drawn at once as a node with many gateways sends in an interval: a draw costs more than an echo without it. */
const TOKENS_DRAWN = 64;

let drawn = new Uint8Array(0);
let used = 0;

/** Random bytes that no other echo has. What was drawn before is not written over: sessions hold it. */
export const nextToken = (): Uint8Array => {
  if (used === drawn.length) [drawn, used] = [randomBytes(TOKENS_DRAWN * TOKEN_BYTES), 0];
  return drawn.subarray(used, (used += TOKEN_BYTES));
};
