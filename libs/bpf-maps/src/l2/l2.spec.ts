import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Codec, decode, encode } from '../index.ts';
import {
  L2_FLOOD_NODES,
  L2_FLOOD_PORTS,
  L2_LAYOUT_VERSION,
  L2_MAPS,
  L2_REASONS,
  l2AddressKey,
  l2Buckets,
  l2Config,
  l2CounterKey,
  type L2FdbEntry,
  l2FdbEntry,
  l2FdbKey,
  l2Flood,
  l2LayoutFingerprint,
  l2Neighbor,
  l2NeighborKey,
  l2Network,
  l2NetworkKey,
  l2Port,
  l2PortKey,
  l2Present,
  l2SegmentKey,
  l2TotalKey,
} from './index.ts';

const hex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
const MAC = '02:0a:01:02:03:04';

/** When this fails: see ../layout.spec.ts; the version is that of shape.ts here. */
test('a layout that differs has another version', () => {
  expect(`v${L2_LAYOUT_VERSION} ${l2LayoutFingerprint()}`).toBe('v2 5aa59165');
});

const codecs: readonly (readonly [keyof typeof L2_MAPS, Codec<unknown>, Codec<unknown> | undefined])[] = [
  ['unbounded_l2_ports', l2PortKey, l2Port],
  ['unbounded_l2_addresses', l2AddressKey, l2Present],
  ['unbounded_l2_networks', l2NetworkKey, l2Network],
  ['unbounded_l2_fdb', l2FdbKey, l2FdbEntry],
  ['unbounded_l2_neighbors', l2NeighborKey, l2Neighbor],
  ['unbounded_l2_segments', l2SegmentKey, l2Present],
  ['unbounded_l2_flood', l2NetworkKey, l2Flood],
  ['unbounded_l2_buckets', l2PortKey, l2Buckets],
  ['unbounded_l2_config', l2NetworkKey, l2Config],
  ['unbounded_l2_counters', l2CounterKey, undefined],
  ['unbounded_l2_totals', l2TotalKey, undefined],
] as unknown as readonly (readonly [keyof typeof L2_MAPS, Codec<unknown>, Codec<unknown> | undefined])[];

test('every layout has the size of its map, and every map a layout', () => {
  for (const [name, key, value] of codecs)
    expect([key.size, value?.size ?? 8], name).toEqual([L2_MAPS[name].keyBytes, L2_MAPS[name].valueBytes]);
  expect(codecs.map(([name]) => name)).toEqual(Object.keys(L2_MAPS));
  expect(L2_MAPS.unbounded_l2_totals.maxEntries).toBe(L2_REASONS.length);
});

test('any bytes of the right length decode to something, which is written and read as the same again', () => {
  for (const codec of codecs.flatMap(([, key, value]) => (value ? [key, value] : [key])))
    fc.assert(
      fc.property(fc.uint8Array({ minLength: codec.size, maxLength: codec.size }), (bytes) => {
        const value = decode(codec, bytes);
        expect(decode(codec, encode(codec, value))).toEqual(value);
      }),
    );
});

describe('records', () => {
  test('a port is laid out as the program reads it', () => {
    const port = { network: 1, segment: 2, trusted: true, forwards: true, rate: 100, burst: 20, mac: MAC };
    expect(hex(encode(l2Port, port))).toBe(
      `01000000 02000000 03000000 64000000 14000000 020a01020304 0000 ${'00000000'.repeat(3)}`.replaceAll(' ', ''),
    );
    expect(decode(l2Port, encode(l2Port, port))).toEqual(port);
  });

  test('an IPv4 address stands as a mapped one', () => {
    const address = { ifindex: 3, address: '192.0.2.7' };
    expect(hex(encode(l2AddressKey, address))).toBe('0300000000000000000000000000ffffc0000207');
    expect(decode(l2AddressKey, encode(l2AddressKey, address))).toEqual(address);
    expect(hex(encode(l2NeighborKey, { network: 3, address: 'fd00::7' }))).toBe(
      '03000000fd000000000000000000000000000007',
    );
  });

  test.each<[L2FdbEntry, string]>([
    [{ ifindex: 5, segment: 2, sequence: 3n }, '05000000 02000000 0000000000000000 0300000000000000'],
    [{ locator: 'fd00:1:2:3::', segment: 2, sequence: 3n }, '00000000 02000000 fd00000100020003 0300000000000000'],
    [
      { locator: 'fd00:1:2:3::', segment: 2, sequence: 3n, trusted: true, forwards: true },
      '00000000 02000000 fd00000100020003 0300000000000000 03000000',
    ],
  ])('%o is an FDB entry', (entry, bytes) => {
    expect(hex(encode(l2FdbEntry, entry))).toBe(bytes.replaceAll(' ', '').padEnd(2 * 32, '0'));
    expect(decode(l2FdbEntry, encode(l2FdbEntry, entry))).toEqual(entry);
  });

  test('all ports and nodes of a network fit, and no more', () => {
    const ports = Array.from({ length: L2_FLOOD_PORTS }, (_, index) => index + 1);
    const locators = Array.from({ length: L2_FLOOD_NODES }, (_, index) => `fd00:0:0:${(index + 1).toString(16)}::`);
    expect(decode(l2Flood, encode(l2Flood, { ports, locators }))).toEqual({ ports, locators });
    expect(() => encode(l2Flood, { ports: [...ports, 99], locators })).toThrow(/at most 32 and 64/);
    expect(() => encode(l2Flood, { ports, locators: [...locators, 'fd00::'] })).toThrow(/at most 32 and 64/);
  });

  test.each<[string, () => unknown]>([
    ['a MAC that is none', () => encode(l2Neighbor, { mac: '02:00' })],
    ['a locator with a lower half', () => encode(l2Config, { locator: 'fd00::1', ifindex: 1, mac: MAC })],
    ['an IPv4 locator', () => encode(l2Config, { locator: '192.0.2.0', ifindex: 1, mac: MAC })],
    ['an MTU below that of IPv6', () => encode(l2Network, { mtu: 1279 })],
    ['a local endpoint without a port', () => encode(l2FdbEntry, { ifindex: 0, segment: 0, sequence: 0n })],
    ['a network past 32 bits', () => encode(l2FdbKey, { network: 2 ** 32, mac: MAC })],
    ['a reason that is none', () => encode(l2TotalKey, 'none' as 'forwarded')],
  ])('%s is refused', (_, attempt) => {
    expect(attempt).toThrow(RangeError);
  });
});
