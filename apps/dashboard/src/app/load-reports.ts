import type { Known } from '../view/node-matrix.ts';
import { isOldReport } from '../view/report-age.ts';
import { MOST_NAMES, type NodesAnswer } from './api.ts';

/** What is known of a node, and when it was answered: elapsed ms. */
export interface LoadedReport {
  readonly known: Known;
  /** Of the report, at `at`; absent where there is none. */
  readonly ageMs?: number;
  readonly at: number;
}

interface LoadReports {
  /** @throws Error in words */
  readonly fetch: (names: readonly string[], signal: AbortSignal) => Promise<NodesAnswer>;
  /** Each as it comes; not after the end. */
  readonly onLoaded: (name: string, loaded: LoadedReport) => void;
  readonly signal: AbortSignal;
  readonly elapsed?: () => number;
}

const NONE = 'the server holds no report of the node';
const OLD = 'the node has not reported lately';

/**
 * Loads the reports of nodes, as many with a request as the server answers, one request after the other: a user has so many a second, in all
 * tabs. @throws Error in words, at the first request that fails: the rest is for the next time
 */
export const loadReports = async (
  names: readonly string[],
  { fetch, onLoaded, signal, elapsed = () => performance.now() }: LoadReports,
): Promise<void> => {
  let left = names;
  while (left.length > 0 && !signal.aborted) {
    const asked = left.slice(0, MOST_NAMES);
    const answer = await fetch(asked, signal);
    if (signal.aborted) return;
    const at = elapsed();
    const answered = asked.filter((name) => !answer.left.includes(name));
    // A server that answers nothing is not asked for the same again.
    if (answered.length === 0) throw new Error('the server answers of no node');
    for (const name of answered) {
      const found = Object.hasOwn(answer.nodes, name) ? answer.nodes[name] : undefined;
      if (!found) onLoaded(name, { known: { why: NONE }, at });
      else onLoaded(name, { known: { report: found.report }, ageMs: found.ageMs, at });
    }
    left = left.filter((name) => !answered.includes(name));
  }
};

const unreadable = (error: string): Known => ({ why: `the report cannot be read: ${error}` });

/** What is shown by now of what was loaded: a report counts until it is old, also when the last attempt failed. */
export const knownNow = (loaded: LoadedReport | undefined, nowMs: number, error?: string): Known | undefined => {
  if (loaded === undefined) return error === undefined ? undefined : unreadable(error);
  const { known, ageMs, at } = loaded;
  if (ageMs === undefined) return known;
  if (isOldReport(ageMs)) return { why: OLD };
  return isOldReport(ageMs + nowMs - at) ? unreadable(error ?? 'the server has not answered yet') : known;
};
