import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { checkPinFolder, otherLayouts, pinFolderProblem, removePins, removeSectionPins } from './pin-folder.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'pins-'));
});
afterEach(() => rmSync(root, { recursive: true }));

test.each(['/sys/fs/bpf/unbounded/v1', '/sys/fs/bpf/unbounded/v23/', '/run/x/unbounded/v1'])(
  '%s is valid',
  (folder) => {
    expect(pinFolderProblem(folder)).toBeUndefined();
  },
);

test.each([
  '/sys/fs/bpf/x',
  '/sys/fs/bpf',
  '/sys/fs/bpf/unbounded',
  '/sys/fs/bpf/unbounded/v1/..',
  '/sys/fs/bpf/unbounded/../v1',
  '/sys/fs/bpf/unbounded/v',
  '/sys/fs/bpf/unbounded/v1x',
  'unbounded/v1',
  '',
])('%j is refused, by the flag’s name, and nothing is removed', (folder) => {
  expect(() => checkPinFolder(folder)).toThrow(`--bpffs-dir is "${folder}": must end in /unbounded/v<number>`);
  expect(() => removePins(folder)).toThrow('--bpffs-dir');
});

test('other layouts are the versions beside one, and nothing else', () => {
  for (const name of ['v1', 'v2', 'v10', 'v2x', 'notes']) mkdirSync(join(root, 'unbounded', name), { recursive: true });
  expect(otherLayouts(join(root, 'unbounded/v2/')).sort()).toEqual(
    ['v1', 'v10'].map((name) => join(root, 'unbounded', name)),
  );
  expect(otherLayouts(join(root, 'no/unbounded/v1'))).toEqual([]);
});

test('what sections have pinned beside goes alone at uninstall, and nothing of others', () => {
  for (const name of ['v1/maps', 'l2/v1/maps', 'notes/mine', 'notes/v1'])
    mkdirSync(join(root, 'unbounded', name), { recursive: true });
  removePins(join(root, 'unbounded/v1'));
  expect(readdirSync(join(root, 'unbounded')).sort()).toEqual(['l2', 'notes']);
  removeSectionPins(join(root, 'unbounded/v1'));
  expect(readdirSync(join(root, 'unbounded'))).toEqual(['notes']);
  removeSectionPins(join(root, 'no/unbounded/v1'));
});

test('all versions of ours are removed, and nothing beside them', () => {
  for (const name of ['unbounded/v1/maps', 'unbounded/v2/links', 'cilium'])
    mkdirSync(join(root, name), { recursive: true });
  removePins(join(root, 'unbounded/v1'));
  expect(readdirSync(root)).toEqual(['cilium']);
  mkdirSync(join(root, 'unbounded/v1'), { recursive: true });
  writeFileSync(join(root, 'unbounded/somebody'), '');
  removePins(join(root, 'unbounded/v1'));
  expect(existsSync(join(root, 'unbounded/somebody'))).toBe(true);
  expect(readdirSync(join(root, 'unbounded'))).toEqual(['somebody']);
  removePins(join(root, 'no/unbounded/v1'));
});
