import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { unitNames } from '@unbounded/keeper-protocol';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createStateFaults } from '../../state/state-faults.ts';
import { rejectedRelayUnit, rejectedUnits, removeUnit, writeUnit } from './keeper-units.ts';

let base: string;
let folder: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'units-'));
  folder = join(base, 'units');
});
afterEach(() => rmSync(base, { recursive: true }));

const unit = { device: 'wg51820', privateKeyFile: '/etc/wireguard/server.priv', listenPort: 51820, peers: [] };

test('a unit is one file, for root only, written when it changes', () => {
  expect(unitNames(folder)).toEqual([]);
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
  expect(unitNames(folder)).toEqual(['wg51821']);
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

test('a unit that node-keeper would refuse is reported, and the one before it stays', () => {
  const faults = createStateFaults();
  writeUnit(folder, unit, faults);
  expect(writeUnit(folder, { ...unit, listenPort: 0 }, faults)).toBe(false);
  expect(faults.problems()).toEqual([
    { reason: 'StateNotWritable', message: expect.stringContaining('tunnel unit: listenPort 0: ') },
  ]);
  expect(JSON.parse(readFileSync(join(folder, 'wg51820.json'), 'utf8'))).toEqual(unit);
});

test('what node-keeper refuses is told apart: tunnel units, and the unit of the relay', () => {
  const relayUnit = join(base, 'relay.json');
  expect([rejectedUnits(folder), rejectedRelayUnit(relayUnit)]).toEqual([[], []]);
  writeFileSync(join(base, 'rejected.json'), JSON.stringify(['wg51820.json: one', 'relay.json: two']));
  const told = (reason: string) => [{ reason: 'UnitRejected', message: expect.stringContaining(reason) }];
  expect(rejectedUnits(folder)).toEqual(told('wg51820.json: one; give'));
  expect(rejectedRelayUnit(relayUnit)).toEqual(told('relay.json: two; give'));
});

test('a report of node-keeper that cannot be read is a problem too', () => {
  writeFileSync(join(base, 'rejected.json'), '{');
  expect(rejectedUnits(folder)).toEqual([
    { reason: 'UnitRejected', message: expect.stringContaining('rejections: must be JSON') },
  ]);
});
