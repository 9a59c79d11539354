import { Refusal } from './refusal.ts';
import { type Pace, tokensNow } from './token-bucket.ts';

/** How often a node may report, and how much of it may be on its way: one node takes no other's place. */
export interface NodePace {
  /** Runs the work of one report. @throws Refusal when the node has one under way, or comes too often */
  run<T>(node: string, work: () => Promise<T>): Promise<T>;
}

/** An agent pushes once in 10 s, and within a second after changes; twice where it is asked for the whole report. */
const PACE = { burst: 10, perSecond: 2 } as const;

interface Entry {
  tokens: number;
  atMs: number;
  isBusy: boolean;
}

const refusal = (message: string): Refusal =>
  new Refusal({ status: 429, reason: 'TooManyReports', message, retryAfterS: 1 });

export interface NodePaceOptions {
  /** Milliseconds, monotonic. */
  readonly elapsed?: () => number;
  readonly pace?: Pace;
}

/** Entries are of nodes whose tokens the API server has issued: as many as there are. */
export const createNodePace = ({ elapsed = () => performance.now(), pace = PACE }: NodePaceOptions = {}): NodePace => {
  const entries = new Map<string, Entry>();
  const take = (node: string): Entry => {
    const nowMs = elapsed();
    const entry = entries.get(node) ?? { tokens: pace.burst, atMs: nowMs, isBusy: false };
    entries.set(node, entry);
    if (entry.isBusy) throw refusal('a report of this node is being read');
    entry.tokens = tokensNow(entry, pace, nowMs);
    entry.atMs = nowMs;
    if (entry.tokens < 1) throw refusal(`this node reports more often than ${pace.perSecond} times a second`);
    entry.tokens--;
    return entry;
  };
  return {
    async run(node, work) {
      const entry = take(node);
      entry.isBusy = true;
      try {
        return await work();
      } finally {
        entry.isBusy = false;
      }
    },
  };
};
