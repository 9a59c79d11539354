import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parsePatch } from './patch-file.ts';

const root = join(import.meta.dirname, '../../..');
const paths = globSync('tools/faults/*.patch', { cwd: root }).sort();

const problemsOf = (path: string): string[] => {
  const { catchers } = parsePatch(path, readFileSync(join(root, path), 'utf8'));
  const absent = catchers.filter(({ file }) => globSync(file, { cwd: root }).length === 0);
  const problems = absent.map(({ file }) => `${path}: there is no ${file}`);
  try {
    execFileSync('git', ['apply', '--check', path], { cwd: root, encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    problems.push(`${path}: ${(error as { stderr: string }).stderr}`);
  }
  return problems;
};

// Whether tests notice the faults is shown by `tools/test faults`, which takes hours.
test('every fault can be put into the tree as it is, and names specs that exist', { timeout: 60_000 }, () => {
  expect(paths.length).toBeGreaterThan(100);
  expect(paths.flatMap(problemsOf)).toEqual([]);
});
