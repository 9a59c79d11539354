import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createUnitsReader, tunnelUnits, unitNames } from './units-folder.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'units-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const KEY = '5ZqNUjYwTkSgDnjz9kVCoCjmVLGAXR3zR0O2jPuoL0o=';
const peer = {
  publicKey: KEY,
  endpoint: '192.0.2.1:51820',
  allowedIps: ['100.64.2.0/24'],
  persistentKeepaliveSeconds: 25,
};
const unit = { device: 'wg51820', privateKeyFile: '/etc/wireguard/server.priv', listenPort: 51820, peers: [peer] };
/** By a reader that sees it for the first time. */
const readUnits = (of: string) => createUnitsReader(tunnelUnits)(of);
const write = (name: string, value: unknown): void =>
  writeFileSync(join(folder, name), typeof value === 'string' ? value : JSON.stringify(value));

test('a unit is read as the agent wrote it; other files and a missing folder are nothing', () => {
  write('wg51820.json', unit);
  write('wg51820.json.new', '{');
  expect(readUnits(folder)).toEqual({
    units: new Map([['wg51820', unit]]),
    refused: [],
    unclear: new Set(),
    isComplete: true,
  });
  expect(readUnits(join(folder, 'missing'))).toMatchObject({ units: new Map(), refused: [], isComplete: true });
});

test('where the folder should be and something else is, no unit is known', () => {
  write('file', '');
  expect(readUnits(join(folder, 'file'))).toMatchObject({ units: new Map(), isComplete: false });
  expect(unitNames(join(folder, 'file'))).toEqual([]);
});

test('a reader parses a unit again only when its file is another, and takes what follows a refused one', () => {
  const read = createUnitsReader(tunnelUnits);
  write('wg51820.json', unit);
  const first = read(folder).units.get('wg51820');
  expect(read(folder).units.get('wg51820')).toBe(first);
  write('wg51820.json', '{');
  expect([read(folder).refused.length, read(folder).refused.length]).toEqual([1, 1]);
  write('wg51820.json', { ...unit, listenPort: 51821 });
  expect(read(folder)).toMatchObject({ units: new Map([['wg51820', { ...unit, listenPort: 51821 }]]), refused: [] });
  rmSync(join(folder, 'wg51820.json'));
  expect(read(folder).units.size).toBe(0);
});

describe('a unit is refused, with file and reason, and the others count', () => {
  const bad: readonly [string, unknown, string][] = [
    ['a device of another name', { ...unit, device: 'eth0' }, 'must be wg<port>'],
    ['a device with a path', { ...unit, device: '../wg1' }, 'must be wg<port>'],
    ['a key file elsewhere', { ...unit, privateKeyFile: '/etc/shadow' }, 'must be a file in /etc/wireguard'],
    [
      'a key file out of the folder',
      { ...unit, privateKeyFile: '/etc/wireguard/../shadow' },
      'must be a file in /etc/wireguard',
    ],
    ['port 0', { ...unit, listenPort: 0 }, 'listenPort'],
    ['a port that is text', { ...unit, listenPort: '51820' }, 'listenPort'],
    ['a key that is none', { ...unit, peers: [{ ...peer, publicKey: 'x' }] }, 'must be a WireGuard key in base64'],
    [
      'an endpoint that is none',
      { ...unit, peers: [{ ...peer, endpoint: 'gw:1' }] },
      'peers[0].endpoint "gw:1": must be like',
    ],
    [
      'a prefix that is none',
      { ...unit, peers: [{ ...peer, allowedIps: ['x'] }] },
      'peers[0].allowedIps[0] "x": must be a prefix',
    ],
    ['a version that is later than any reader', { ...unit, minReaderVersion: 2 }, 'delete its pod on this node'],
    [
      'a key whose last digit has bits that no byte holds',
      { ...unit, peers: [{ ...peer, publicKey: `${KEY.slice(0, 42)}p=` }] },
      'must be a WireGuard key',
    ],
    ['no JSON', '{"device":', 'JSON'],
    ['an array', [], 'expected object'],
  ];
  test.each(bad)('%s', (_, value, reason) => {
    write('wg51820.json', value);
    write('wg51821.json', { ...unit, device: 'wg51821' });
    const { units, refused } = readUnits(folder);
    expect([...units.keys()]).toEqual(['wg51821']);
    expect(refused).toEqual([expect.stringContaining('wg51820.json: ')]);
    expect(refused[0]).toContain(reason);
    expect(readUnits(folder).unclear).toEqual(new Set(['wg51820']));
    expect(unitNames(folder)).toEqual(['wg51820', 'wg51821']);
  });

  test('what is no regular file', () => {
    mkdirSync(join(folder, 'wg51820.json'));
    expect(readUnits(folder).refused).toEqual([expect.stringContaining('must be a regular file')]);
  });

  test('a unit in the file of another device', () => {
    write('wg51821.json', unit);
    expect(readUnits(folder).refused).toEqual(['wg51821.json: it is for wg51820: the file must be named wg51820.json']);
  });
});

test('whatever a file holds, reading never throws', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        fc.string(),
        fc.string().map((text) => JSON.stringify(unit).slice(0, text.length * 7)),
      ),
      (text) => {
        write('wg51820.json', text);
        const { units, refused } = readUnits(folder);
        expect(units.size + refused.length).toBe(1);
      },
    ),
    { numRuns: 200 },
  );
});
