import { readFileSync } from 'node:fs';
import { replaceFile } from '@unbounded/state-files';

/** By nonces peers tell a new start of an agent from packets of an old one: they grow from start to start, whatever the clock does. */

const NS_PER_MS = 1_000_000n;

export interface Clocks {
  /** Wall clock, milliseconds since the epoch. */
  readonly now: () => number;
  /** Nanoseconds since boot: grows from process to process. */
  readonly sinceBootNs: () => bigint;
}

export const CLOCKS: Clocks = { now: Date.now, sinceBootNs: () => process.hrtime.bigint() };

/** The time; where the clock was set back, what comes after the last nonce that was kept, later in a boot a greater one. */
export const nextNonce = (previous: bigint, { now, sinceBootNs }: Clocks): bigint => {
  const time = BigInt(now()) * NS_PER_MS;
  return time > previous ? time : previous + 1n + sinceBootNs();
};

const keptIn = (file: string): bigint => {
  try {
    const text = readFileSync(file, 'utf8');
    return /^\d{1,20}$/.test(text) ? BigInt(text) : 0n;
  } catch {
    return 0n; // a first start
  }
};

/** The next one of a file, which has it from then on. Where that cannot be written the clock has to be right. */
export const takeNonce = (file: string, clocks: Clocks = CLOCKS): bigint => {
  const nonce = nextNonce(keptIn(file), clocks);
  try {
    replaceFile(file, String(nonce), { mode: 0o600, durable: false });
  } catch {
    // The verdicts' file beside it says that nothing can be written.
  }
  return nonce;
};
