import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { silentLogger } from '@unbounded/telemetry';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { followAllowedKeys } from './allowed-keys.ts';

const LOOK_MS = 500;
const keys = [1, 2, 3].map((byte) => Buffer.alloc(32, byte));
const lineOf = (key: Buffer): string => `${key.toString('base64')}\n`;

let folder: string;
let file: string;
let lists: number[];
beforeEach(() => {
  vi.useFakeTimers();
  folder = mkdtempSync(join(tmpdir(), 'allowed-keys-'));
  file = join(folder, 'keys');
  lists = [];
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true });
});

/** Notes how many keys each list has that is taken. */
const follow = () => {
  const allowed = followAllowedKeys(file, silentLogger);
  allowed.follow(() => lists.push(allowed.size));
  return { ...allowed, size: () => allowed.size, [Symbol.dispose]: () => allowed.stop() };
};

test('a file that is written in place, line by line, disconnects nobody that is on the next list', () => {
  writeFileSync(file, keys.map(lineOf).join(''));
  using allowed = follow();
  expect(allowed.size()).toBe(3);
  writeFileSync(file, '');
  vi.advanceTimersByTime(LOOK_MS);
  for (const key of keys.slice(0, 2)) {
    appendFileSync(file, lineOf(key));
    vi.advanceTimersByTime(LOOK_MS);
    expect(allowed.size()).toBe(3);
  }
  vi.advanceTimersByTime(LOOK_MS);
  expect({ size: allowed.size(), lists }).toEqual({ size: 2, lists: [2] });
});

test('a list that stays empty is one: nobody may be registered', () => {
  writeFileSync(file, keys.map(lineOf).join(''));
  using allowed = follow();
  writeFileSync(file, '# nobody\n');
  vi.advanceTimersByTime(2 * LOOK_MS);
  expect({ size: allowed.size(), lists }).toEqual({ size: 0, lists: [0] });
});

test('the first list is taken as soon as there is one', () => {
  using allowed = follow();
  writeFileSync(file, lineOf(keys[0]!));
  vi.advanceTimersByTime(LOOK_MS);
  expect({ size: allowed.size(), has: allowed.has(keys[0]!), lists }).toEqual({ size: 1, has: true, lists: [1] });
});
