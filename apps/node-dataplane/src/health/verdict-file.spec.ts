import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openVerdictFile, type Verdict } from './verdict-file.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'verdicts-'));
  path = join(folder, 'health.json');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

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

test('a nonce grows also when the clock went back, and verdicts of before a reboot are forgotten', async () => {
  await saveVerdicts();
  const ahead = 2n ** 62n;
  change((saved) => ({ ...saved, nonce: String(ahead), bootId: 'another' }));
  const next = openVerdictFile(path);
  expect(next.nonce).toBe(ahead + 1n);
  expect(next.known.size).toBe(0);
  expect(openVerdictFile(path).nonce).toBe(ahead + 2n);
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
