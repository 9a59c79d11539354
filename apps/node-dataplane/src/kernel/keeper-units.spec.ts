import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createStateFaults } from './state-faults.ts';
import { removeUnit, unitDevices, writeUnit } from './keeper-units.ts';

let base: string;
let folder: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'units-'));
  folder = join(base, 'units');
});
afterEach(() => rmSync(base, { recursive: true }));

const unit = { device: 'wg51820', privateKeyFile: '/etc/wireguard/server.priv', listenPort: 51820, peers: [] };

test('a unit is one file, for root only, written when it changes', () => {
  expect(unitDevices(folder)).toEqual([]);
  expect(writeUnit(folder, unit)).toBe(true);
  expect(writeUnit(folder, unit)).toBe(false);
  expect(writeUnit(folder, { ...unit, listenPort: 51821 })).toBe(true);
  expect(readdirSync(folder)).toEqual(['wg51820.json']);
  expect(statSync(join(folder, 'wg51820.json')).mode & 0o777).toBe(0o600);
  expect(JSON.parse(readFileSync(join(folder, 'wg51820.json'), 'utf8'))).toEqual({ ...unit, listenPort: 51821 });
});

test('units are listed and removed by device; removing twice is fine', () => {
  writeUnit(folder, unit);
  writeUnit(folder, { ...unit, device: 'wg51821' });
  removeUnit(folder, 'wg51820');
  removeUnit(folder, 'wg51820');
  expect(unitDevices(folder)).toEqual(['wg51821']);
});

test('a unit that cannot be removed is reported, and removed when it can', () => {
  const faults = createStateFaults();
  const stuck = join(folder, 'wg51820.json');
  mkdirSync(stuck, { recursive: true });
  expect(removeUnit(folder, 'wg51820', faults)).toBe(false);
  expect(faults.problems().map(({ reason }) => reason)).toEqual(['StateNotWritable']);
  rmSync(stuck, { recursive: true });
  faults.retry();
  expect(faults.problems()).toEqual([]);
});

test('where the folder should be and something else is, there are no units', () => {
  writeFileSync(folder, '');
  expect(unitDevices(folder)).toEqual([]);
});
