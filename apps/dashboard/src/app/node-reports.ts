import { useEffect, useRef, useState } from 'react';
import type { Known } from '../view/node-matrix.ts';
import { fetchNodes } from './api.ts';
import { knownNow, type LoadedReport, loadReports } from './load-reports.ts';
import { pause } from './pause.ts';

/** Between the end of one round and the next one. */
const AGAIN_MS = 10_000;
/** What has come is drawn so often at most while more comes. */
const DRAW_MS = 300;

interface Loading {
  readonly token: string;
  readonly signal: AbortSignal;
  /** What came before, and what comes. */
  readonly loaded: Map<string, LoadedReport>;
  /** Draws what is loaded by now. */
  readonly draw: (error?: string) => void;
}

/** One round. @returns why not all could be loaded */
const loadOnce = async (names: readonly string[], { token, signal, loaded, draw }: Loading, before?: string) => {
  const drawing = setInterval(() => draw(before), DRAW_MS);
  try {
    await loadReports(names, {
      fetch: (some) => fetchNodes(some, token, signal),
      onLoaded: (name, one) => void loaded.set(name, one),
      signal,
    });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    clearInterval(drawing);
  }
};

const loadInRounds = async (names: readonly string[], loading: Loading): Promise<void> => {
  const { signal, draw } = loading;
  let error: string | undefined;
  while (!signal.aborted) {
    error = await loadOnce(names, loading, error);
    if (signal.aborted) return;
    draw(error);
    await pause(AGAIN_MS, signal);
  }
};

/** The reports of several nodes, again every 10 s; no more of them once the page is left. */
export const useNodeReports = (names: readonly string[], token: string): ReadonlyMap<string, Known> => {
  const [known, setKnown] = useState<ReadonlyMap<string, Known>>(() => new Map());
  const { current: loaded } = useRef(new Map<string, LoadedReport>());
  const key = JSON.stringify(names);
  useEffect(() => {
    const left = new AbortController();
    const all = JSON.parse(key) as string[];
    // Of nodes that are asked for no more nothing is kept.
    for (const name of loaded.keys()) if (!all.includes(name)) loaded.delete(name);
    const draw = (error?: string): void => {
      const nowMs = performance.now();
      const each = all.map((name) => [name, knownNow(loaded.get(name), nowMs, error)] as const);
      setKnown(new Map(each.flatMap(([name, one]) => (one ? [[name, one] as const] : []))));
    };
    void loadInRounds(all, { token, signal: left.signal, loaded, draw });
    return () => left.abort();
  }, [key, token, loaded]);
  return known;
};
