import { mkdtempSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeEach, expect, test, vi } from 'vitest';
import { removeFile, replaceFile, replaceFileAsync, replaceLink } from './index.ts';

/** What is asked of the kernel, in order: a power cut leaves what was synchronized before it. */
const calls = vi.hoisted((): string[] => []);

const syncOf = (fd: number): string => `sync ${basename(readlinkSync(`/proc/self/fd/${fd}`))}`;

vi.mock('node:fs', async (original) => {
  const real = await original<typeof import('node:fs')>();
  return {
    ...real,
    fsyncSync: (fd: number) => {
      calls.push(syncOf(fd));
      real.fsyncSync(fd);
    },
    renameSync: (from: string, to: string) => {
      calls.push(`rename ${basename(to)}`);
      real.renameSync(from, to);
    },
  };
});
vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  return {
    ...real,
    rename: async (from: string, to: string) => {
      calls.push(`rename ${basename(to)}`);
      await real.rename(from, to);
    },
  };
});

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
