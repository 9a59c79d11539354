import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { copyPreparedEtcd, keepPreparedEtcd } from './prepared-etcd.ts';

const FLAGS = ['--service-cluster-ip-range=10.96.0.0/16'];

let folder: string;
const at = (...names: string[]): string => join(folder, ...names);
const built = (version: string): void => {
  for (const program of ['kubernetes', 'etcd']) writeFileSync(at('bin', `.${program}.built`), version);
};
/** Data of an etcd, with this in it. */
const dataOf = (name: string, text: string): string => {
  mkdirSync(at(name, 'member'), { recursive: true });
  writeFileSync(at(name, 'member', 'db'), text);
  return at(name);
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'prepared-'));
  mkdirSync(at('bin'));
  built('1');
  vi.stubEnv('UNBOUNDED_ASSETS', folder);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

test('what the first server left is what each of the next ones begins with', () => {
  expect(copyPreparedEtcd(at('first'), FLAGS)).toBe(false);
  expect(existsSync(at('first'))).toBe(false);
  keepPreparedEtcd(dataOf('first', 'roles'), FLAGS);
  for (const name of ['second', 'third']) {
    expect(copyPreparedEtcd(at(name), FLAGS)).toBe(true);
    expect(readFileSync(at(name, 'member', 'db'), 'utf8')).toBe('roles');
    writeFileSync(at(name, 'member', 'db'), 'its own');
  }
});

test('of two that were first, one is kept, and nothing of the other is left', () => {
  keepPreparedEtcd(dataOf('first', 'roles'), FLAGS);
  keepPreparedEtcd(dataOf('other', 'roles of the other'), FLAGS);
  copyPreparedEtcd(at('next'), FLAGS);
  expect(readFileSync(at('next', 'member', 'db'), 'utf8')).toBe('roles');
  expect(readdirSync(at('etcd-data'))).toHaveLength(1);
});

test('another version of the programs begins anew, and what was kept for the one before goes', () => {
  keepPreparedEtcd(dataOf('first', 'roles'), FLAGS);
  built('2');
  expect(copyPreparedEtcd(at('next'), FLAGS)).toBe(false);
  keepPreparedEtcd(dataOf('next', 'roles of version 2'), FLAGS);
  expect(readdirSync(at('etcd-data'))).toHaveLength(1);
  rmSync(at('next'), { recursive: true });
  expect(copyPreparedEtcd(at('next'), FLAGS)).toBe(true);
  expect(readFileSync(at('next', 'member', 'db'), 'utf8')).toBe('roles of version 2');
});

test('a server that is started with other flags begins anew', () => {
  keepPreparedEtcd(dataOf('first', 'roles'), FLAGS);
  expect(copyPreparedEtcd(at('next'), ['--service-cluster-ip-range=10.97.0.0/16'])).toBe(false);
});

test('programs of which nobody knows the version have nothing kept', () => {
  rmSync(at('bin', '.etcd.built'));
  keepPreparedEtcd(dataOf('first', 'roles'), FLAGS);
  expect([copyPreparedEtcd(at('next'), FLAGS), existsSync(at('etcd-data'))]).toEqual([false, false]);
});
