import fs, { mkdtempSync, type PathLike, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import promises, { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { replaceInBuiltin } from '@unbounded/testing/builtin';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { removeFile, replaceFile, replaceFileAsync, replaceLink } from './index.ts';

/** What is asked of the kernel, in order: a power cut leaves what was synchronized before it. */
const calls: string[] = [];

const syncOf = (fd: number): string => `sync ${basename(readlinkSync(`/proc/self/fd/${fd}`))}`;

const { fsyncSync, renameSync } = fs;
const { rename } = promises;
const named = (to: PathLike): string => `rename ${basename(String(to))}`;
const replaced = [
  replaceInBuiltin(fs, {
    fsyncSync: (fd) => {
      calls.push(syncOf(fd));
      fsyncSync(fd);
    },
    renameSync: (from, to) => {
      calls.push(named(to));
      renameSync(from, to);
    },
  }),
  replaceInBuiltin(promises, {
    rename: async (from, to) => {
      calls.push(named(to));
      await rename(from, to);
    },
  }),
];

const folder = mkdtempSync(join(tmpdir(), 'durable-'));
const path = join(folder, 'state.json');
/** What all file handles have in common. */
const handles = await (async () => {
  await using file = await open('/dev/null', 'r');
  return Object.getPrototypeOf(file) as { sync: (this: { readonly fd: number }) => Promise<void> };
})();
const { sync } = handles;
handles.sync = async function (this) {
  calls.push(syncOf(this.fd));
  await sync.call(this);
};
afterAll(() => {
  for (const one of replaced) one[Symbol.dispose]();
  handles.sync = sync;
  rmSync(folder, { recursive: true });
});
beforeEach(() => void calls.splice(0));

const DURABLE = ['sync state.json.new', 'rename state.json', `sync ${basename(folder)}`];

test('the content is on the disk before its name, and the name before the call returns', () => {
  replaceFile(path, 'x', { mode: 0o600 });
  expect(calls).toEqual(DURABLE);
});

test('the same beside the thread', async () => {
  await replaceFileAsync(path, 'x', { mode: 0o600 });
  expect(calls).toEqual(DURABLE);
});

test('a link to what need not exist is there after a power cut, whatever was in its place', () => {
  const link = join(folder, 'link');
  replaceFile(link, 'a file', { mode: 0o600, durable: false });
  symlinkSync('left by a process that was killed', `${link}.new`);
  calls.splice(0);
  replaceLink(link, '/run/gone');
  expect([calls, readlinkSync(link)]).toEqual([['rename link', `sync ${basename(folder)}`], '/run/gone']);
});

test('a file that is removed is gone after a power cut', () => {
  removeFile(path);
  expect(calls).toEqual([`sync ${basename(folder)}`]);
});

test('what need not last waits for no disk', async () => {
  replaceFile(path, 'x', { mode: 0o600, durable: false });
  await replaceFileAsync(path, 'y', { mode: 0o600, durable: false });
  expect(calls).toEqual(['rename state.json', 'rename state.json']);
});
