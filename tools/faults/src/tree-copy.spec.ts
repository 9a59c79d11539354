import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { copyTree, type TreeCopy } from './tree-copy.ts';

const root = resolve(import.meta.dirname, '../../..');
const SOURCE = 'libs/health/src/site-hash.ts';

let copy: TreeCopy;
beforeAll(() => void (copy = copyTree(root)));
afterAll(() => copy[Symbol.dispose]());

/** A hash of a name, reckoned by an app's code of a tree: through a package of ours, as the app finds it. */
const hashIn = (tree: string): string => {
  const program = "import { siteHash } from '@unbounded/health'; process.stdout.write(String(siteHash('a')));";
  const cwd = join(tree, 'apps/node-dataplane');
  return execFileSync(join(tree, 'tools/node'), ['--input-type=module', '--eval', program], { cwd, encoding: 'utf8' });
};
const patchOf = (text: string): string => {
  const path = join(copy.folder, 'a.patch');
  writeFileSync(path, text);
  return path;
};

test('what is patched in the copy is what runs there, and nowhere else', () => {
  const lines = readFileSync(join(root, SOURCE), 'utf8').split('\n');
  const [last] = lines.slice(-2);
  const patch = patchOf(
    `fault: x\n\ndiff --git a/${SOURCE} b/${SOURCE}\n--- a/${SOURCE}\n+++ b/${SOURCE}\n@@ -${lines.length - 1},1 +${lines.length - 1},2 @@\n ${last}\n+process.stdout.write('patched ');\n`,
  );
  const before = hashIn(root);
  expect(hashIn(copy.folder)).toBe(before);
  copy.apply(patch);
  expect(hashIn(copy.folder)).toBe(`patched ${before}`);
  expect(hashIn(root)).toBe(before);
  copy.revert(patch);
  expect(hashIn(copy.folder)).toBe(before);
});

test('a copy that is let go of leaves nothing behind, and the checkout as it was', () => {
  const another = copyTree(root);
  another[Symbol.dispose]();
  expect(existsSync(another.folder)).toBe(false);
  expect(existsSync(join(root, 'node_modules/vitest/package.json'))).toBe(true);
});

test('a patch that does not apply says where', () => {
  const patch = patchOf(
    `diff --git a/${SOURCE} b/${SOURCE}\n--- a/${SOURCE}\n+++ b/${SOURCE}\n@@ -1,1 +1,1 @@\n-not there\n+at all\n`,
  );
  expect(() => copy.apply(patch)).toThrow(`patch failed: ${SOURCE}:1`);
});
