import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { relayUnit } from '@unbounded/keeper-protocol';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createRelayUnitCheck } from './unit-check.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'unit-check-'));
  file = join(folder, 'relay.json');
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

const unit = { services: [], identities: [] };

test('says why the unit is refused, after its name, until it is another or gone', () => {
  const check = createRelayUnitCheck(file);
  expect(check()).toEqual([]);
  writeFileSync(file, JSON.stringify({ ...unit, minReaderVersion: 2 }));
  expect(check()).toEqual([expect.stringMatching(/^relay\.json: relay unit: minReaderVersion 2: .*delete its pod/)]);
  writeFileSync(file, JSON.stringify(unit));
  expect(check()).toEqual([]);
  rmSync(file);
  mkdirSync(file);
  expect(check()).toEqual([expect.stringContaining('must be a regular file')]);
  rmSync(file, { recursive: true });
  expect(check()).toEqual([]);
});

test('reads a unit once', () => {
  writeFileSync(file, '{');
  const read = vi.spyOn(relayUnit, 'read');
  const check = createRelayUnitCheck(file);
  expect([check().length, check().length]).toEqual([1, 1]);
  expect(read).toHaveBeenCalledTimes(1);
});

test('goes on where the file cannot even be looked at', () => {
  symlinkSync(file, file);
  expect(createRelayUnitCheck(file)()).toEqual([expect.stringContaining('ELOOP')]);
});
