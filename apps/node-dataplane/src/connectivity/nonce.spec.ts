import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { takeNonce } from './nonce.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nonce-'));
  file = join(folder, 'path-nonce');
});
afterEach(() => rmSync(folder, { recursive: true }));

const clocks = (nowMs: number, sinceBootNs = 5n) => ({ now: () => nowMs, sinceBootNs: () => sinceBootNs });

test('nonces grow from start to start, also when the clock was set back, and at the same time', () => {
  const nonces = [1000, 2000, 2000, 500, 500, 3000].map((nowMs) => takeNonce(file, clocks(nowMs)));
  for (const [index, nonce] of nonces.entries()) if (index > 0) expect(nonce > nonces[index - 1]!).toBe(true);
  expect(readFileSync(file, 'utf8')).toBe(String(nonces.at(-1)));
});

test.each(['', 'none', '-5', '1'.repeat(40)])('a file with %j counts as a first start', (text) => {
  writeFileSync(file, text);
  expect(takeNonce(file, clocks(7))).toBe(7_000_000n);
});

test('where nothing can be written it is the time', () => {
  mkdirSync(`${file}.new`);
  expect([takeNonce(file, clocks(9)), takeNonce(file, clocks(8))]).toEqual([9_000_000n, 8_000_000n]);
});
