import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '@unbounded/testing/tree';

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

const EXCEPT = [':!CHANGELOG.md', ':!tools/faults', ':!tools/repo/src/public-names.spec.ts', ':!libs/telemetry'];

/** Lines of the tree in which a pattern (POSIX extended) is found. */
const grep = (patterns: readonly string[]): string[] => {
  const args = ['grep', '--untracked', '-nIE', ...patterns.flatMap((pattern) => ['-e', pattern]), '--', ...EXCEPT];
  const { status, stdout, stderr } = spawnSync('git', args, {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C' },
  });
  if (status !== 0 && status !== 1) throw new Error(`git grep: ${stderr}`);
  return stdout.split('\n').filter((line) => line !== '');
};

test('the changelog has the table of former names', () => {
  expect(formerNames).toContain('--state-folder');
});

/** A name that is also a word of English counts only where it is quoted. */
const patternOf = (name: string): string =>
  /^[A-Z][a-z]+$/.test(name)
    ? `['"\`]${name}['"\`]`
    : `(^|[^A-Za-z0-9_-])${name.replaceAll(/[{}]/g, '[$&]')}($|[^A-Za-z0-9_-])`;

test('former names are nowhere but in the changelog', () => {
  expect(grep(formerNames.map(patternOf))).toEqual([]);
});

test('no flag of an app is called a folder', () => {
  expect(grep(['--[a-z-]+-folder', '^ +[a-z][A-Za-z]*Folder: option\\('])).toEqual([]);
});
