import fs, { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { topologyKinds } from '@unbounded/crds';
import { replaceInBuiltin } from '@unbounded/testing/builtin';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createFileSource } from './file-source.ts';

const READ_MS = 10;

let root: string;
let folder: string;
let errors: string[];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'manifests-'));
  folder = join(root, 'objects');
  errors = [];
});
afterEach(() => rmSync(root, { recursive: true }));

const writeSite = (name: string): void =>
  writeFileSync(join(folder, `${name}.yaml`), `kind: Site\nmetadata: {name: ${name}}`);
const open = () =>
  createFileSource(folder, {
    ...{ kinds: topologyKinds, nodeName: 'n1', unwatchedReadMs: READ_MS },
    onError: ({ message }) => void errors.push(message),
  });
type Source = ReturnType<typeof open>;
const sitesOf = (source: Source): string[] | undefined =>
  source.snapshot()?.objects.sites.map(({ metadata }) => metadata.name);
const expectSites = async (source: Source, ...names: string[]): Promise<void> => {
  for (let look = 0; look < 250 && sitesOf(source)?.join() !== names.join(); look++) await sleep(20);
  expect(sitesOf(source)).toEqual(names);
};

test('objects follow the files, and whoever asked for it is told', async () => {
  mkdirSync(folder);
  writeSite('s1');
  const source = open();
  expect(sitesOf(source)).toEqual(['s1']);
  let changes = 0;
  source.onChange(() => changes++);
  writeSite('s2');
  await expectSites(source, 's1', 's2');
  expect(changes).toBeGreaterThan(0);
  expect(errors).toEqual([]);
  await source.stop();
});

test('where programs of the node have all inotify instances the folder is read from time to time, and once it can be is watched', async () => {
  mkdirSync(folder);
  writeSite('s1');
  let watches = 0;
  let source: Source;
  {
    using _ = replaceInBuiltin(fs, {
      watch: () => {
        watches++;
        throw Object.assign(new Error('EMFILE: too many open files, watch'), { code: 'EMFILE' });
      },
    });
    source = open();
    expect(sitesOf(source)).toEqual(['s1']);
    writeSite('s2');
    await expectSites(source, 's1', 's2');
    expect(watches).toBeGreaterThan(1);
  }
  expect(errors).toEqual([`EMFILE: too many open files, watch: read every ${READ_MS} ms instead`]);
  const { watch } = fs;
  watches = 0;
  const counted = ((...args: Parameters<typeof watch>) => {
    watches++;
    return watch(...args);
  }) as typeof watch;
  using _ = replaceInBuiltin(fs, { watch: counted });
  await sleep(20 * READ_MS);
  expect(watches).toBe(1);
  writeSite('s3');
  await expectSites(source, 's1', 's2', 's3');
  await source.stop();
});

test('a folder that comes later is read then, and its absence is told once', async () => {
  const source = open();
  expect(source.snapshot()).toBeUndefined();
  mkdirSync(folder);
  writeSite('s1');
  await expectSites(source, 's1');
  expect(errors).toHaveLength(2); // that it cannot be watched, and not be read
  await source.stop();
});

test('a folder that is removed and made again is read again', async () => {
  mkdirSync(folder);
  writeSite('s1');
  const source = open();
  rmSync(folder, { recursive: true });
  mkdirSync(folder);
  await sleep(5 * READ_MS);
  writeSite('s2');
  await expectSites(source, 's2');
  expect(errors.length).toBeLessThanOrEqual(1); // that it was not there for a moment
  await source.stop();
});

test('what is read again and says the same is no change', async () => {
  mkdirSync(folder);
  writeSite('s1');
  const source = open();
  let changes = 0;
  source.onChange(() => changes++);
  writeSite('s1');
  writeSite('s2');
  await expectSites(source, 's1', 's2');
  expect(source.snapshot()!.version).toBe(2);
  expect(changes).toBe(1);
  await source.stop();
});
