import { useEffect, useState } from 'react';
import type { Known } from '../view/node-matrix.ts';
import { fetchNode } from './api.ts';
import { loadEach } from './load-each.ts';

/** Between the end of one round and the next one. */
const AGAIN_MS = 10_000;
const MOST_AT_ONCE = 6;
/** What has come is drawn so often at most while more comes. */
const DRAW_MS = 300;
/** As docs/status.md: older, it does not count. */
const OLD_MS = 25_000;

const load = async (name: string, token: string, signal: AbortSignal): Promise<Known> => {
  try {
    const answer = await fetchNode(name, token, signal);
    if (!answer) return { why: 'the server holds no report of the node' };
    return answer.ageMs > OLD_MS ? { why: 'the node has not reported lately' } : { report: answer.report };
  } catch (error) {
    return { why: `the report cannot be read: ${(error as Error).message}` };
  }
};

/** The reports of several nodes, again every 10 s; some at once, and no more of them once the page is left. */
export const useNodeReports = (names: readonly string[], token: string): ReadonlyMap<string, Known> => {
  const [known, setKnown] = useState<ReadonlyMap<string, Known>>(() => new Map());
  const key = JSON.stringify(names);
  useEffect(() => {
    const left = new AbortController();
    const all = JSON.parse(key) as string[];
    const loaded = new Map<string, Known>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const draw = (): void => {
      // Of nodes that are asked for no more nothing is kept.
      setKnown(
        (before) =>
          new Map(
            all.flatMap((name) => {
              const one = loaded.get(name) ?? before.get(name);
              return one ? [[name, one] as const] : [];
            }),
          ),
      );
    };
    const round = async (): Promise<void> => {
      const drawing = setInterval(draw, DRAW_MS);
      left.signal.addEventListener('abort', () => clearInterval(drawing));
      await loadEach(all, {
        load: (name, signal) => load(name, token, signal),
        onLoaded: (name, one) => void loaded.set(name, one),
        ...{ signal: left.signal, mostAtOnce: MOST_AT_ONCE },
      });
      clearInterval(drawing);
      if (left.signal.aborted) return;
      draw();
      timer = setTimeout(() => void round(), AGAIN_MS);
    };
    void round();
    return () => {
      left.abort();
      clearTimeout(timer);
    };
  }, [key, token]);
  return known;
};
