import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('a program that does not compile leaves the objects of before, all of them: none of a half build counts as up to date', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bpf-build-'));
  try {
    const isSource = (path: string): boolean => !/node_modules|\/build$/.test(path);
    cpSync(import.meta.dirname, folder, { recursive: true, filter: isSource });
    appendFileSync(join(folder, 'unbounded_l2.bpf.c'), '\n#error of the test\n');
    const { status, stderr } = spawnSync(join(folder, 'build.sh'), { encoding: 'utf8' });
    expect([status === 0, stderr]).toEqual([false, expect.stringContaining('of the test')]);
    expect(existsSync(join(folder, 'build')) ? readdirSync(join(folder, 'build')) : []).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
