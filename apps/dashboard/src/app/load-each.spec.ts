import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { loadEach } from './load-each.ts';

const NAMES = Array.from({ length: 20 }, (_, index) => `n${index}`);

test('loads all, and never more at once than it may', async () => {
  let [atOnce, most] = [0, 0];
  const loaded: string[] = [];
  await loadEach(NAMES, {
    load: async (name) => {
      most = Math.max(most, ++atOnce);
      await sleep(1);
      atOnce--;
      return name;
    },
    onLoaded: (name) => void loaded.push(name),
    signal: new AbortController().signal,
    mostAtOnce: 4,
  });
  expect(loaded.toSorted()).toEqual(NAMES.toSorted());
  expect(most).toBe(4);
});

test('once it is left, nothing more is asked for and nothing is told', async () => {
  const left = new AbortController();
  const asked: string[] = [];
  const loaded: string[] = [];
  await loadEach(NAMES, {
    load: async (name) => {
      asked.push(name);
      await sleep(1);
      if (asked.length === 4) left.abort();
      return name;
    },
    onLoaded: (name) => void loaded.push(name),
    signal: left.signal,
    mostAtOnce: 2,
  });
  expect(asked).toHaveLength(4);
  expect(loaded.length).toBeLessThan(4);
});
