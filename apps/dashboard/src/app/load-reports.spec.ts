import type { NodeReport } from '@unbounded/status';
import { describe, expect, test } from 'vitest';
import { MOST_NAMES, type NodesAnswer } from './api.ts';
import { knownNow, type LoadedReport, loadReports } from './load-reports.ts';

const NAMES = Array.from({ length: 2 * MOST_NAMES + 1 }, (_, index) => `n${index}`);
const reportOf = (name: string): NodeReport => ({ name }) as unknown as NodeReport;
const whole = (names: readonly string[]): NodesAnswer => ({
  nodes: Object.fromEntries(names.map((name) => [name, { report: reportOf(name), ageMs: 5 }])),
  left: [],
});

/** Loads them from a server that answers so. */
const load = async (
  names: readonly string[],
  answer: (names: readonly string[], asked: readonly string[][], left: AbortController) => NodesAnswer,
) => {
  const left = new AbortController();
  const asked: string[][] = [];
  const loaded = new Map<string, LoadedReport>();
  const end = loadReports(names, {
    fetch: async (some) => {
      asked.push([...some]);
      return answer(some, asked, left);
    },
    onLoaded: (name, one) => void loaded.set(name, one),
    ...{ signal: left.signal, elapsed: () => 1000 },
  });
  return { asked, loaded, error: await end.then(() => undefined, String) };
};

describe('loading', () => {
  test('all, with as few requests as the server takes', async () => {
    const { asked, loaded } = await load(NAMES, whole);
    expect(asked.map(({ length }) => length)).toEqual([MOST_NAMES, MOST_NAMES, 1]);
    expect([...loaded.keys()]).toEqual(NAMES);
    expect(loaded.get('n7')).toEqual({ known: { report: { name: 'n7' } }, ageMs: 5, at: 1000 });
  });

  test('what an answer leaves is asked for again, with what follows', async () => {
    const { asked, loaded } = await load(NAMES, (names) => ({ ...whole(names.slice(0, 15)), left: names.slice(15) }));
    expect(asked.map(([first]) => first)).toEqual(['n0', 'n15', 'n30']);
    expect([...loaded.keys()]).toEqual(NAMES);
  });

  test('a node that has not reported is said so, whatever its name', async () => {
    const { loaded } = await load(['constructor', 'n1'], () => whole(['n1']));
    expect(loaded.get('constructor')).toEqual({ known: { why: 'the server holds no report of the node' }, at: 1000 });
    expect(loaded.get('n1')).toMatchObject({ ageMs: 5 });
  });

  test('a server that answers of nothing is not asked without end', async () => {
    const { asked, error } = await load(NAMES, (names) => ({ nodes: {}, left: names }));
    expect(asked).toHaveLength(1);
    expect(error).toBe('Error: the server answers of no node');
  });

  test('a refusal ends it, what came before stays', async () => {
    const { loaded, error } = await load(NAMES, (names, asked) => {
      if (asked.length === 2) throw new Error('the server answers 429');
      return whole(names);
    });
    expect(error).toBe('Error: the server answers 429');
    expect(loaded.size).toBe(MOST_NAMES);
  });

  test('once it is left, nothing more is asked for, and nothing is loaded', async () => {
    const { asked, loaded } = await load(NAMES, (names, all, left) => {
      if (all.length === 2) left.abort();
      return whole(names);
    });
    expect(asked).toHaveLength(2);
    expect(loaded.size).toBe(MOST_NAMES);
  });
});

describe('what is shown of it', () => {
  const loaded: LoadedReport = { known: { report: reportOf('n1') }, ageMs: 10_000, at: 1000 };

  test('nothing before it came; why, when it cannot be read', () => {
    expect(knownNow(undefined, 1000)).toBeUndefined();
    expect(knownNow(undefined, 1000, 'away')).toEqual({ why: 'the report cannot be read: away' });
  });

  test('a report, until it is old by its age and the time since', () => {
    expect(knownNow(loaded, 15_999)).toBe(loaded.known);
    expect(knownNow(loaded, 15_999, 'away')).toBe(loaded.known);
    expect(knownNow(loaded, 16_000, 'away')).toEqual({ why: 'the report cannot be read: away' });
    expect(knownNow(loaded, 16_000)).toEqual({ why: 'the report cannot be read: the server has not answered yet' });
  });

  test('a report that was old when it came is the fault of the node', () => {
    expect(knownNow({ ...loaded, ageMs: 25_000 }, 1000, 'away')).toEqual({ why: 'the node has not reported lately' });
  });

  test('a node without a report stays so until there is one', () => {
    const none = { known: { why: 'none' }, at: 0 };
    expect(knownNow(none, 1_000_000, 'away')).toBe(none.known);
  });
});
