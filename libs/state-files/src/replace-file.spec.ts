import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { removeFile, replaceFile, replaceFileAsync, type ReplaceOptions } from './index.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'replace-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

type Replace = (path: string, content: string | Uint8Array, options: ReplaceOptions) => Promise<void>;
const writers: readonly (readonly [string, Replace])[] = [
  ['at once', async (...args) => replaceFile(...args)],
  ['beside the thread', replaceFileAsync],
];

test.each(writers)(
  'a file is replaced whole, with its mode whatever the umask, and nothing else is left (%s)',
  async (_, replace) => {
    const path = join(folder, 'deep/er/state.json');
    const before = process.umask(0o077);
    try {
      await replace(path, 'long content', { mode: 0o644, directoryMode: 0o755 });
      await replace(path, Buffer.from('short'), { mode: 0o644 });
    } finally {
      process.umask(before);
    }
    expect(readFileSync(path, 'utf8')).toBe('short');
    expect(statSync(path).mode & 0o777).toBe(0o644);
    expect(readdirSync(join(folder, 'deep/er'))).toEqual(['state.json']);
  },
);

test.each(writers)('a write that fails throws with its code and leaves the old content (%s)', async (_, replace) => {
  const path = join(folder, 'state.json');
  await replace(path, 'old', { mode: 0o600 });
  mkdirSync(`${path}.new`); // nothing can be written there
  await expect(replace(path, 'new', { mode: 0o600 })).rejects.toMatchObject({ code: 'EISDIR' });
  expect(readFileSync(path, 'utf8')).toBe('old');
});

test.each(writers)('a symbolic link under the temporary name is not followed (%s)', async (_, replace) => {
  const [path, victim] = [join(folder, 'state.json'), join(folder, 'victim')];
  writeFileSync(victim, 'precious');
  symlinkSync(victim, `${path}.new`);
  await expect(replace(path, 'x', { mode: 0o600 })).rejects.toMatchObject({ code: 'ELOOP' });
  await replace(path, 'x', { mode: 0o600 }); // the link was taken away
  expect([readFileSync(victim, 'utf8'), readFileSync(path, 'utf8')]).toEqual(['precious', 'x']);
});

test('removing twice is fine, also without the directory', () => {
  const path = join(folder, 'state.json');
  replaceFile(path, 'x', { mode: 0o600 });
  removeFile(path);
  removeFile(path);
  removeFile(join(folder, 'no/such/file'));
  expect(readdirSync(folder)).toEqual([]);
});
