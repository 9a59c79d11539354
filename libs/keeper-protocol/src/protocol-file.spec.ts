import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  deviceStates,
  deviceUnits,
  relayStates,
  relayTalliesOfAny,
  relayUnits,
  tunnelUnits,
} from './arbitraries.testdata.ts';
import { deviceState } from './device-state.ts';
import { deviceUnit, networkDigest } from './device-unit.ts';
import { KeeperProtocolError } from './protocol-file.ts';
import { rejections } from './rejections.ts';
import { relayState } from './relay-state.ts';
import { relayTallies } from './relay-tallies.ts';
import { relayUnit } from './relay-unit.ts';
import { tunnelUnit } from './tunnel-unit.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'keeper-protocol-'));
  file = join(folder, 'wg51820.json');
});
afterEach(() => rmSync(folder, { recursive: true }));

const KEY = '5ZqNUjYwTkSgDnjz9kVCoCjmVLGAXR3zR0O2jPuoL0o=';
const peer = { publicKey: KEY, allowedIps: ['100.64.2.0/24'], endpoint: '192.0.2.1:51820' };
const unit = { device: 'wg51820', privateKeyFile: '/etc/wireguard/server.priv', listenPort: 51820, peers: [peer] };
const LONGEST_MESSAGE = 4000;

describe('what is written is read', () => {
  test('a tunnel unit', () =>
    fc.assert(
      fc.property(tunnelUnits, (value) => {
        tunnelUnit.write(file, value);
        expect(tunnelUnit.read(file)).toEqual(value);
      }),
    ));

  test('a device unit and a state', () =>
    fc.assert(
      fc.property(deviceUnits, deviceStates, (asked, state) => {
        expect(deviceUnit.parse(deviceUnit.format(asked))).toEqual(asked);
        expect(deviceState.parse(deviceState.format(state))).toEqual(state);
        const reordered = { ...asked, network: Object.fromEntries(Object.entries(asked.network).toReversed()) };
        expect(networkDigest(reordered as typeof asked)).toBe(networkDigest(asked));
      }),
    ));

  test('a relay unit, a state, tallies and rejections', () =>
    fc.assert(
      fc.property(
        relayUnits,
        relayStates,
        relayTalliesOfAny,
        fc.array(fc.string()),
        (asked, state, tallies, reasons) => {
          expect(relayUnit.parse(relayUnit.format(asked))).toEqual(asked);
          expect(relayState.parse(relayState.format(state))).toEqual(state);
          expect(relayTallies.parse(relayTallies.format(tallies))).toEqual(tallies);
          expect(rejections.parse(rejections.format(reasons))).toEqual(reasons);
        },
      ),
    ));
});

describe('a write', () => {
  test('makes one file, for root only, and only of another value', () => {
    expect(tunnelUnit.write(file, unit)).toBe(true);
    const { ino, mode } = statSync(file);
    expect(mode & 0o777).toBe(0o600);
    expect(tunnelUnit.write(file, unit)).toBe(false);
    const { peers, ...rest } = unit;
    expect(tunnelUnit.write(file, { peers, ...rest })).toBe(false); // the same in another order
    expect(statSync(file).ino).toBe(ino);
    expect(tunnelUnit.write(file, { ...unit, listenPort: 51821 })).toBe(true);
    expect(readdirSync(folder)).toEqual(['wg51820.json']);
  });

  test('of a value that a reader would refuse leaves the file as it was', () => {
    tunnelUnit.write(file, unit);
    const write = () => tunnelUnit.write(file, { ...unit, listenPort: 0 });
    expect(write).toThrow(KeeperProtocolError);
    expect(write).toThrow('tunnel unit: listenPort 0: ');
    expect(tunnelUnit.read(file)).toEqual(unit);
  });

  test('has no field that the protocol does not know, which a former keeper would refuse', () => {
    const secret = { ...peer, presharedKey: KEY };
    tunnelUnit.write(file, { ...unit, peers: [secret] });
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(unit);
  });

  test('of more than a reader takes is refused', () => {
    const peers = Array.from({ length: 300 }, () => ({ ...peer, allowedIps: Array(4000).fill('100.64.2.0/24') }));
    expect(() => tunnelUnit.format({ ...unit, peers })).toThrow(/\d+ bytes: must be at most 16777216/);
  });
});

describe('a file is refused with field, value and what is valid', () => {
  const bad: readonly [string, object, string][] = [
    ['a port of 0', { listenPort: 0 }, 'listenPort 0: '],
    [
      'a text for a port',
      { listenPort: 'x'.repeat(99) },
      `listenPort "${'x'.repeat(50)}": Invalid input: expected number`,
    ],
    ['no peers', { peers: undefined }, 'peers is absent: '],
    ['an object for peers', { peers: {} }, 'peers (an object): Invalid input: expected array'],
    [
      'a key that is none',
      { peers: [peer, { ...peer, publicKey: 'x' }] },
      'peers[1].publicKey "x": must be a WireGuard key',
    ],
    [
      'too many peers',
      { peers: Array.from({ length: 10_001 }, () => peer) },
      'peers (an array of 10001): Too big: expected array to have <=10000',
    ],
    ['a keepalive beyond its field', { peers: [{ ...peer, persistentKeepaliveSeconds: 65_536 }] }, 'to be <=65535'],
  ];
  test.each(bad)('%s', (_, change, message) => {
    expect(() => tunnelUnit.parse(JSON.stringify({ ...unit, ...change }))).toThrow(message);
  });

  test('a part of a file, at whatever byte it ends', () => {
    const text = tunnelUnit.format(unit);
    for (let length = 0; length < text.length; length++)
      expect(() => tunnelUnit.parse(text.slice(0, length))).toThrow(KeeperProtocolError);
  });

  test('one that is larger than allowed, before it is read', () => {
    writeFileSync(file, Buffer.alloc((64 << 10) + 1, ' '));
    expect(() => relayTallies.read(file)).toThrow('relay tallies: 65537 bytes: must be at most 65536');
  });

  test('millions of elements that are not valid, by the first', () => {
    const text = JSON.stringify({ ...unit, peers: [{ ...peer, allowedIps: Array(60_000).fill(0) }] });
    expect(() => tunnelUnit.parse(text)).toThrow(/^tunnel unit: peers\[0\]\.allowedIps\[0\] 0: [^;]*$/);
  });

  test('a value that is nested deeper than a stack is', () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
    for (const text of [deep, `{"peers":${deep}}`, `{"device":${deep}}`, `{"version":${deep}}`])
      expect(() => tunnelUnit.parse(text)).toThrow(KeeperProtocolError);
  });
});

test('whatever a text holds, it is read or refused by the error of the protocol, in bounded words', () => {
  const near = fc.tuple(fc.constantFrom(...Object.keys(unit), 'version', '__proto__'), fc.jsonValue());
  const texts = fc.oneof(
    fc.string(),
    fc.json(),
    near.map(([field, value]) => JSON.stringify({ ...unit, [field]: value })),
    fc.jsonValue().map((value) => JSON.stringify({ ...unit, peers: [value] })),
  );
  fc.assert(
    fc.property(texts, (text) => {
      for (const kind of [tunnelUnit, relayUnit, relayState, relayTallies, rejections]) {
        try {
          kind.parse(text);
        } catch (error) {
          expect(error).toBeInstanceOf(KeeperProtocolError);
          expect((error as Error).message.length).toBeLessThan(LONGEST_MESSAGE);
        }
      }
    }),
    { numRuns: 500 },
  );
});

test('a file that is absent is the error of the system call, so that its reader can tell', () => {
  expect(() => tunnelUnit.read(file)).toThrow(expect.objectContaining({ code: 'ENOENT' }));
});
