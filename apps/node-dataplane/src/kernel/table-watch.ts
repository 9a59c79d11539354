import { NFT_TABLE } from '@unbounded/config/ownership';
import type { Nftables, TableMonitor } from '@unbounded/nftables';
import type { Logger } from '@unbounded/telemetry';

/**
 * Hears of changes to our nftables table (`nft flush ruleset` of others, too) and asks for a repair at once. Somebody who
 * changes it in a loop gets so many repairs, and then one every now and then: an agent that does nothing else helps nobody.
 */

export interface RateLimit {
  /** Calls that are passed on at once. */
  readonly burst: number;
  /** Then one in this time. */
  readonly everyMs: number;
}

/** A repair is a change, too. */
const REPAIRS: RateLimit = { burst: 10, everyMs: 2000 };

/** Calls `act`, but no more often than that; what is asked for in between is one call at the end of the time. */
export const rateLimited = (
  act: () => void,
  { burst, everyMs }: RateLimit,
): { readonly ask: () => void; readonly stop: () => void } => {
  let tokens = burst;
  let lastMs = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const run = (): void => {
    timer = undefined;
    const now = performance.now();
    tokens = Math.min(burst, tokens + (now - lastMs) / everyMs);
    lastMs = now;
    if (tokens < 1) {
      timer = setTimeout(run, Math.ceil((1 - tokens) * everyMs)).unref();
      return;
    }
    tokens -= 1;
    act();
  };
  return { ask: () => void (timer ?? run()), stop: () => clearTimeout(timer) };
};

/** @param onChange may be called after changes of our own, too: they need no repair */
export const watchTable = (nft: Nftables, onChange: () => void, logger: Logger, limit = REPAIRS): Disposable => {
  const { ask, stop } = rateLimited(onChange, limit);
  const monitor: TableMonitor = nft.monitor('inet', NFT_TABLE, {
    onChange: ask,
    onError: (error) =>
      logger.warn({ error: error.message }, 'nftables changes are no longer heard: drift is found at the next pass'),
  });
  return {
    [Symbol.dispose]() {
      monitor.close();
      stop();
    },
  };
};
