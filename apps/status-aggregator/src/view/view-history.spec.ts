import { describe, expect, it } from 'vitest';
import type { ClusterView } from '@unbounded/status';
import { createViewHistory } from './view-history.ts';

/** Any object with other content is another view to the history. */
const viewOf = (sites: number): ClusterView => ({ summary: { sites } }) as unknown as ClusterView;

describe('the history of the view', () => {
  it('gives a client that was away what it missed, in order', () => {
    const history = createViewHistory('h');
    for (const sites of [1, 2, 3, 4]) history.append(viewOf(sites));
    expect(history.since('h-2')).toEqual([
      { position: 'h-3', patch: { summary: { sites: 3 } } },
      { position: 'h-4', patch: { summary: { sites: 4 } } },
    ]);
    expect(history.since('h-4')).toEqual([]);
  });

  it.each(['', 'h', 'h-', 'h-0', 'h--1', 'h-1.5', 'h-5', 'h-x', 'h-1e1', 'other-2', 'h-2-3', 'h-Infinity'])(
    'leads nowhere from position "%s"',
    (position) => {
      const history = createViewHistory('h');
      for (const sites of [1, 2, 3]) history.append(viewOf(sites));
      expect(history.since(position)).toBeUndefined();
    },
  );

  it('ends: who was away for longer gets the whole view', () => {
    const history = createViewHistory('h');
    for (let sites = 1; sites <= 300; sites++) history.append(viewOf(sites));
    expect(history.since('h-99')).toBeUndefined();
    expect(history.since('h-100')).toHaveLength(200);
    expect(history.current()).toMatchObject({ position: 'h-300', view: { summary: { sites: 300 } } });
  });

  it('is bounded by the size of its updates as well', () => {
    const history = createViewHistory('h');
    const large = (at: number) => ({ summary: { text: String(at).repeat(3 * 1024 * 1024) } }) as unknown as ClusterView;
    for (const at of [1, 2, 3, 4, 5, 6, 7, 8]) history.append(large(at));
    expect(history.since('h-3')).toHaveLength(5);
    expect(history.since('h-2')).toBeUndefined();
  });

  it('tells nothing of a view that is the same', () => {
    const history = createViewHistory('h');
    const told: string[] = [];
    const subscription = history.subscribe(({ position }) => void told.push(position));
    history.append(viewOf(1));
    history.append(viewOf(1));
    history.append(viewOf(2));
    subscription[Symbol.dispose]();
    history.append(viewOf(3));
    expect(told).toEqual(['h-1', 'h-2']);
  });
});
