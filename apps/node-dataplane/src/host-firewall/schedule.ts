import { gathered } from '../kernel/gathered.ts';
import { rateLimited } from '../kernel/table-watch.ts';

/** When the tables of a firewall are to be looked at again. */

/** Milliseconds between questions whether the firewall is there. */
export const EVERY_MS = 5000;
/** After a failure, and twice as long after each further one: most often another program wrote the table between our look and our change. */
const RETRY = { firstMs: 1000, longestMs: 60_000 } as const;
/** Who changes a table in a loop gets so many looks, and then one in this time. */
const REPAIRS = { burst: 30, everyMs: 1000 };
/** Milliseconds: a firewall that comes up writes its rules in many transactions, and each is told. */
const COLLECT_MS = 20;

interface Looked {
  /** What was there to look at. */
  readonly what: string;
  readonly failed: boolean;
  /** Until the next look, if nothing is heard before. */
  readonly nextMs: number;
}

export interface Schedule {
  /** @param what is there to look at: something else is looked at at once */
  isDue(what: string): boolean;
  /** Also while somebody looks: what is asked for then is not seen. */
  ask(): void;
  asked(): number;
  /** @param before what `asked` said when the look began */
  looked(look: Looked, before: number): void;
  nextMs(): number;
}

export const createSchedule = (elapsed: () => number): Schedule => {
  let dueMs = -Infinity;
  let failures = 0;
  let known = '';
  let asked = 0;
  return {
    isDue: (what) => elapsed() >= dueMs || what !== known,
    ask() {
      asked += 1;
      dueMs = -Infinity;
    },
    asked: () => asked,
    looked({ what, failed, nextMs }, before) {
      known = what;
      failures = failed ? failures + 1 : 0;
      const retryMs = Math.min(RETRY.longestMs, RETRY.firstMs * 2 ** (failures - 1));
      if (asked === before) dueMs = elapsed() + (failed ? retryMs : nextMs);
    },
    nextMs: () => Math.max(0, Math.min(EVERY_MS, dueMs - elapsed())),
  };
};

/** Many changes in a moment are one. */
export const collected = (onChange: () => void): { readonly hear: () => void; readonly stop: () => void } => {
  const repairs = rateLimited(onChange, REPAIRS);
  const changes = gathered(repairs.ask, COLLECT_MS);
  return {
    hear: changes.ask,
    stop() {
      changes.stop();
      repairs.stop();
    },
  };
};
