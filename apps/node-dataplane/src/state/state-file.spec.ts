import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger, createMetrics } from '@unbounded/telemetry';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isNumber, isRecordOf, stateFile } from './state-file.ts';
import { createStateFaults } from './state-faults.ts';

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

test('a file that is cut at any length counts as absent, is told of, and never ends the process', () => {
  const told: string[] = [];
  const faults = { ...createStateFaults(), unreadable: (path: string) => void told.push(path) };
  const path = join(folder, 'state.json');
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.integer()), fc.nat(), (value, at) => {
      const text = JSON.stringify(value);
      const cut = text.slice(0, at % text.length);
      writeFileSync(path, cut);
      told.length = 0;
      expect(stateFile(path, isRecordOf(isNumber), faults).read()).toBeUndefined();
      expect(told).toEqual([path]);
    }),
  );
});

test('a value that cannot be written is kept, told of once, counted, and written as soon as that works', async () => {
  const log: string[] = [];
  const logger = createLogger({ name: 'test', destination: { write: (line) => void log.push(line) } });
  const metrics = createMetrics();
  const faults = createStateFaults({ logger, metrics });
  const path = join(folder, 'state.json');
  mkdirSync(`${path}.new`);
  const file = stateFile(path, isRecordOf(isNumber), faults);
  for (const a of [1, 2]) file.write({ a });
  faults.retry();
  expect(faults.problems()).toEqual([
    { reason: 'StateNotWritable', message: expect.stringContaining(`${path} cannot be written (EISDIR`) },
  ]);
  expect(log).toHaveLength(1);
  faults.measure(faults.problems());
  expect(await metrics.render()).toContain('unbounded_state_files_unwritten 1');
  rmSync(`${path}.new`, { recursive: true });
  faults.retry();
  expect([faults.problems(), readFileSync(path, 'utf8')]).toEqual([[], '{"a":2}']);
  faults.measure(faults.problems());
  const text = await metrics.render();
  expect(text).toContain('unbounded_state_files_unwritten 0');
  expect(text).toContain('unbounded_state_file_failures_total{operation="write"} 3');
});

test('a value that is the file’s again needs no write any more', () => {
  const faults = createStateFaults();
  const path = join(folder, 'state.json');
  const file = stateFile(path, isRecordOf(isNumber), faults);
  file.write({ a: 1 });
  mkdirSync(`${path}.new`);
  file.write({ a: 2 });
  expect(faults.problems()).toHaveLength(1);
  file.write({ a: 1 });
  expect(faults.problems()).toEqual([]);
});

test('removing twice is fine', () => {
  const file = open();
  file.write({ a: 1 });
  file.remove();
  file.remove();
  expect(file.read()).toBeUndefined();
});
