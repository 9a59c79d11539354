import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isNumber, isRecordOf, stateFile } from './state-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'state-'));
});
afterEach(() => rmSync(folder, { recursive: true }));
const open = (name = 'deep/state.json') => stateFile(join(folder, name), isRecordOf(isNumber));

test('what was written is read, by this process and the next', () => {
  const file = open();
  expect(file.read()).toBeUndefined();
  file.write({ a: 1 });
  expect([file.read(), open().read()]).toEqual([{ a: 1 }, { a: 1 }]);
  expect(statSync(join(folder, 'deep/state.json')).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(folder, 'deep'))).toEqual(['state.json']);
});

test('the same value is not written again, unless the file went away', () => {
  const file = open();
  file.write({ a: 1 });
  const path = join(folder, 'deep/state.json');
  const before = statSync(path).ino;
  file.write({ a: 1 });
  expect(statSync(path).ino).toBe(before);
  rmSync(path);
  file.write({ a: 1 });
  expect(existsSync(path)).toBe(true);
});

test.each(['', '{', '[1]', 'null', '{"a":"text"}', '\0\0', '{"a":1'])(
  'a file that holds %j counts as absent',
  (text) => {
    writeFileSync(join(folder, 'state.json'), text);
    expect(open('state.json').read()).toBeUndefined();
  },
);

test('a broken file is replaced whole by the next write', () => {
  writeFileSync(join(folder, 'state.json'), '{');
  const file = open('state.json');
  file.read();
  file.write({ b: 2 });
  expect(readFileSync(join(folder, 'state.json'), 'utf8')).toBe('{"b":2}');
});

test('removing twice is fine', () => {
  const file = open();
  file.write({ a: 1 });
  file.remove();
  file.remove();
  expect(file.read()).toBeUndefined();
});
