import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './tree.ts';

/**
 * Flags, reasons and metrics have the names of docs/glossary.md. The table in the changelog says what they were called before: those
 * names are nowhere else, except in faults of earlier implementations and in this test.
 */

const ROW = /^ *\| (?:flag|reason|condition|metric|label) +\| (`.+?`) +\|/gm;
const NAME = /`([^`]+)`/g;
const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
const formerNames = [...changelog.matchAll(ROW)].flatMap(([, cell]) =>
  [...cell!.matchAll(NAME)].map(([, name]) => name!),
);

const grep = (...args: string[]): string[] =>
  (spawnSync('git', ['grep', '--untracked', '-nI', ...args], { cwd: root, encoding: 'utf8' }).stdout ?? '')
    .split('\n')
    .filter((line) => line !== '');

const EXCEPT = [':!CHANGELOG.md', ':!tools/faults', ':!tools/repo/src/public-names.spec.ts'];

test('the changelog has the table of former names', () => {
  expect(formerNames).toContain('--state-folder');
});

test('former names are nowhere but in the changelog', () => {
  // A name that is also a word of English counts only where it is quoted.
  const patterns = formerNames.map((name) =>
    /^[A-Z][a-z]+$/.test(name) ? `['"\`]${name}['"\`]` : `(^|[^A-Za-z0-9_-])${name}($|[^A-Za-z0-9_-])`,
  );
  expect(grep('-E', ...patterns.flatMap((pattern) => ['-e', pattern]), '--', ...EXCEPT)).toEqual([]);
});

test('no flag of an app is called a folder', () => {
  expect(grep('-E', '-e', '--[a-z-]+-folder', '-e', '^ +[a-z][A-Za-z]*Folder: option\\(', '--', ...EXCEPT)).toEqual([]);
});
