import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@unbounded/telemetry';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createRejectionReport } from './known-units.ts';

let folder: string;
let said: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'known-units-'));
  said = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

const report = () =>
  createRejectionReport(
    join(folder, 'rejected.json'),
    createLogger({ name: 'test', destination: { write: (line) => void said.push(line) } }),
  );

test('rejections that could not be written are written as soon as that is possible, and said once', () => {
  const tell = report();
  mkdirSync(join(folder, 'rejected.json.new'));
  for (let look = 0; look < 3; look++) tell(['peers: must be a list']);
  expect(existsSync(join(folder, 'rejected.json'))).toBe(false);
  expect(said).toEqual([expect.stringContaining('must be a list'), expect.stringContaining('cannot write')]);
  rmSync(join(folder, 'rejected.json.new'), { recursive: true });
  tell(['peers: must be a list']);
  expect(readFileSync(join(folder, 'rejected.json'), 'utf8')).toContain('must be a list');
  expect(said).toHaveLength(2);
});

test('once nothing is rejected there is no file', () => {
  const tell = report();
  tell(['peers: must be a list']);
  tell([]);
  expect(existsSync(join(folder, 'rejected.json'))).toBe(false);
});
