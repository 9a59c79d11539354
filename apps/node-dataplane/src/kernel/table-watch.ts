import type { Nftables, TableMonitor, TableSpec } from '@unbounded/nftables';
import type { Logger } from '@unbounded/telemetry';
import { createTokenBucket, type RateLimit } from './token-bucket.ts';

/**
 * Hears of changes to one of our nftables tables (`nft flush ruleset` of others, too) and asks for a repair at once. Somebody who
 * changes it in a loop gets so many repairs, and then one every now and then: an agent that does nothing else helps nobody. Each
 * table has its own limit: who changes one in a loop delays the repair of no other.
 */

/** A repair is a change, too. */
const REPAIRS: RateLimit = { burst: 10, everyMs: 2000 };

/** Calls `act`, but no more often than that; what is asked for in between is one call at the end of the time. */
export const rateLimited = (
  act: () => void,
  limit: RateLimit,
): { readonly ask: () => void; readonly stop: () => void } => {
  const bucket = createTokenBucket(limit);
  let timer: NodeJS.Timeout | undefined;
  const run = (): void => {
    timer = undefined;
    const waitMs = bucket.waitMs();
    if (waitMs > 0) {
      timer = setTimeout(run, waitMs).unref();
      return;
    }
    bucket.take();
    act();
  };
  return { ask: () => void (timer ?? run()), stop: () => clearTimeout(timer) };
};

export interface TableWatchOptions {
  /** May be called after changes of our own, too: they need no repair. */
  readonly onChange: () => void;
  readonly logger: Logger;
  readonly limit?: RateLimit;
}

export const watchTable = (
  nft: Pick<Nftables, 'monitor'>,
  { family, name: table }: Pick<TableSpec, 'family' | 'name'>,
  { onChange, logger, limit = REPAIRS }: TableWatchOptions,
): Disposable => {
  const { ask, stop } = rateLimited(onChange, limit);
  const monitor: TableMonitor = nft.monitor(family, table, {
    onChange: ask,
    onError: (error) =>
      logger.warn({ table, error: error.message }, 'nftables monitor failed; drift is detected at the next reconcile'),
  });
  return {
    [Symbol.dispose]() {
      monitor.close();
      stop();
    },
  };
};
