import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openVerdictFile as openFile, type Verdict, type VerdictFile } from './verdict-file.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'verdicts-'));
  path = join(folder, 'health.json');
});
const files: VerdictFile[] = [];
const openVerdictFile = (...how: Parameters<typeof openFile>): VerdictFile => {
  const file = openFile(...how);
  files.push(file);
  return file;
};
afterEach(async () => {
  for (const file of files.splice(0)) await file.settled(); // a write makes its folder anew
  rmSync(folder, { recursive: true, force: true });
});

const verdicts = new Map<string, Verdict>([
  ['g1/IPv4', { state: 'Unhealthy', graceOver: true, sites: { hashes: [1, 2], truncated: false } }],
]);
const change = (edit: (saved: Record<string, unknown>) => unknown): void =>
  writeFileSync(path, JSON.stringify(edit(JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>)));

const saveVerdicts = async (): Promise<bigint> => {
  const file = openVerdictFile(path);
  file.save(() => verdicts);
  await file.settled();
  return file.nonce;
};

test('verdicts are known to the next process, and its nonce is greater', async () => {
  const nonce = await saveVerdicts();
  const next = openVerdictFile(path);
  expect(next.known).toEqual(verdicts);
  expect(next.nonce > nonce).toBe(true);
});

/** A process that starts, and writes what it knows, at a time of its own. */
const startAt = async (now: number, sinceBootMs: number): Promise<bigint> => {
  const file = openVerdictFile(path, { now: () => now, sinceBootNs: () => BigInt(sinceBootMs) * 1_000_000n });
  await file.settled();
  return file.nonce;
};
const HOUR_MS = 3_600_000;

test('verdicts of before a reboot are forgotten', async () => {
  await saveVerdicts();
  change((saved) => ({ ...saved, bootId: 'another' }));
  expect(openVerdictFile(path).known.size).toBe(0);
});

test('a nonce grows with every start, also when the clock was set back or forth in between', async () => {
  const start = Date.parse('2026-01-01T00:00:00Z');
  const nonces: bigint[] = [];
  for (const [index, step] of [0, -HOUR_MS, 0, HOUR_MS, -10 * HOUR_MS, -10 * HOUR_MS].entries())
    nonces.push(await startAt(start + step + index, 1000 * (index + 1)));
  expect(nonces).toEqual([...nonces].sort((a, b) => (a < b ? -1 : 1)));
  expect(new Set(nonces).size).toBe(nonces.length);
});

test('a nonce grows with every start within a boot while the file cannot be written and the clock is behind', async () => {
  const start = Date.parse('2026-01-01T00:00:00Z');
  await startAt(start, 1000);
  mkdirSync(`${path}.new`);
  const first = await startAt(start - HOUR_MS, 2000);
  expect((await startAt(start - HOUR_MS, 3000)) > first).toBe(true);
});

test('a file that cannot be written at the start is a problem that the next save may end, and no error', async () => {
  mkdirSync(`${path}.new`, { recursive: true });
  const file = openVerdictFile(path);
  await file.settled();
  expect(file.problems().map(({ reason }) => reason)).toEqual(['StateNotWritable']);
  rmSync(`${path}.new`, { recursive: true });
  file.save(() => verdicts);
  await file.settled();
  expect([file.problems(), openVerdictFile(path).known]).toEqual([[], verdicts]);
});

test('what could not be written is written by itself once it can be', async () => {
  mkdirSync(`${path}.new`, { recursive: true });
  const file = openVerdictFile(path, undefined, 10);
  file.save(() => verdicts);
  await vi.waitFor(() => expect(file.problems()).not.toEqual([]));
  rmSync(`${path}.new`, { recursive: true });
  await vi.waitFor(() => expect(file.problems()).toEqual([]));
  expect(openVerdictFile(path).known).toEqual(verdicts);
});

test.each([
  ['a state that does not exist', { state: 'Dead', graceOver: true }],
  ['a verdict without its fields', {}],
  ['sites that are no numbers', { state: 'New', graceOver: true, sites: { hashes: ['a'], truncated: false } }],
  ['nothing', null],
])('a file with %s counts as absent', async (_name, verdict) => {
  await saveVerdicts();
  change((saved) => ({ ...saved, peers: { 'g1/IPv4': verdict } }));
  expect(openVerdictFile(path).known.size).toBe(0);
});

test('of many changes in a row the last one is in the file', async () => {
  const file = openVerdictFile(path);
  for (let count = 0; count < 100; count++) file.save(() => new Map([[`g${count}/IPv4`, verdicts.get('g1/IPv4')!]]));
  await file.settled();
  expect([...openVerdictFile(path).known.keys()]).toEqual(['g99/IPv4']);
});

test('a folder that cannot be written costs nothing but the memory', async () => {
  const file = openVerdictFile(path);
  await file.settled(); // its first write would make the folder anew
  rmSync(folder, { recursive: true });
  writeFileSync(folder, 'no folder');
  file.save(() => verdicts);
  await expect(file.settled()).resolves.toBeUndefined();
});

test('what is in the file already is not written again', async () => {
  const file = openVerdictFile(path);
  const inode = async (): Promise<number> => {
    file.save(() => verdicts);
    await file.settled();
    return statSync(path).ino; // a file that is written is a new one
  };
  expect(await inode()).toBe(await inode());
});
