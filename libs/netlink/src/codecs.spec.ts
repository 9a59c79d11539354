import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { MessageWriter, readAttributeList, readAttributes } from './attribute.codec.ts';
import { decodeFamily, readGenericAttributes } from './generic-socket.ts';
import { decodeAddress, encodeAddress } from './link-address.codec.ts';
import { decodeLink, encodeLink } from './link.codec.ts';
import { HEADER_BYTES, NetlinkDecodeError, readMessages, writeMessage } from './message.codec.ts';
import type { CreatableKind } from './model/link.ts';
import type { NexthopSpec, RouteSpec, RuleSpec } from './model/route.ts';
import { decodeEvent } from './monitor.ts';
import { decodeNetconf } from './netconf.codec.ts';
import { decodeNeighbour, encodeNeighbour } from './neighbour.codec.ts';
import { decodeNexthop, encodeNexthop } from './nexthop.codec.ts';
import { decodeRoute, encodeRoute } from './route.codec.ts';
import { decodeRule, encodeRule } from './rule.codec.ts';
import { decodeFilter, decodeQdisc } from './traffic-control.codec.ts';

const port = fc.integer({ min: 1, max: 65_535 });
const index = fc.integer({ min: 1, max: 0x7fff_ffff });
const ipv4 = fc.ipV4().filter((text) => text !== '0.0.0.0');
const ipv6 = fc.constantFrom('2001:db8::1', 'fd00::a:1', '::1', 'fe80::1');
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const mac = fc.constantFrom('02:00:00:00:00:01', '02:0a:01:00:01:ff');

/** Fields that are undefined are as good as absent. */
const clean = <T extends object>(value: T): T =>
  Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as T;

const prefix = fc.oneof(
  fc
    .tuple(fc.integer({ min: 0, max: 0xff_ffff }), fc.constantFrom(8, 16, 24))
    .map(
      ([bits, length]) =>
        `${bits >> 16}.${length > 8 ? (bits >> 8) & 255 : 0}.${length > 16 ? bits & 255 : 0}.0/${length}`,
    ),
  fc.constantFrom('2001:db8::/32', 'fd00:1::/64', '::/0', '2001:db8::1/128'),
);

const isV6 = ({ dst }: { dst: string }): boolean => dst.includes(':');

describe('what is written is read back', () => {
  test('routes', () => {
    const route = fc
      .record({
        dst: prefix,
        table: fc.constantFrom(254, 252, 1000, 0xffff_0000),
        protocol: fc.integer({ min: 1, max: 255 }),
        scope: fc.constantFrom<'global' | 'link'>('global', 'link'),
        type: fc.constantFrom<'unicast' | 'blackhole' | 'unreachable'>('unicast', 'blackhole', 'unreachable'),
        metric: maybe(index),
        mtu: maybe(port),
        advmss: maybe(port),
        way: fc.oneof(
          fc.record({ link: maybe(index), gateway: maybe(fc.oneof(ipv4, ipv6)) }),
          fc.record({ nexthopId: index }),
          fc.record({
            nexthops: fc.array(fc.record({ link: index, gateway: ipv6, weight: fc.integer({ min: 1, max: 256 }) }), {
              minLength: 1,
              maxLength: 4,
            }),
          }),
        ),
      })
      .map(({ way, ...rest }) => clean({ ...rest, ...clean(way) }) as RouteSpec);
    fc.assert(
      fc.property(route, (spec) => {
        expect(decodeRoute(encodeRoute(spec))).toEqual({ ...spec, family: isV6(spec) ? 6 : 4, flags: 0 });
      }),
    );
  });

  test('encapsulations of routes', () => {
    for (const encap of [
      { type: 'ip', id: 7, dst: '192.0.2.9', src: '192.0.2.1', ttl: 64 },
      { type: 'ip6', id: 0xff_ffff, dst: '2001:db8::9' },
      { type: 'seg6', mode: 'encap.red', segments: ['2001:db8:a::1', '2001:db8:b::2'] },
      { type: 'seg6', mode: 'inline', segments: ['2001:db8:a::1'] },
    ] as const) {
      expect(decodeRoute(encodeRoute({ dst: '2001:db8::/32', link: 3, encap })).encap).toEqual(encap);
    }
  });

  test('nexthops', () => {
    const nexthop = fc.oneof(
      fc.record({ id: index, protocol: fc.nat(255), family: fc.constant(4 as const), link: index, gateway: ipv4 }),
      fc.record({
        id: index,
        protocol: fc.nat(255),
        family: fc.constant(6 as const),
        blackhole: fc.constant(true as const),
      }),
      fc.record({
        id: index,
        protocol: fc.nat(255),
        group: fc.array(fc.record({ id: index, weight: fc.integer({ min: 1, max: 256 }) }), {
          minLength: 1,
          maxLength: 16,
        }),
      }),
    );
    fc.assert(
      fc.property(nexthop as fc.Arbitrary<NexthopSpec>, (spec) => {
        expect(decodeNexthop(encodeNexthop(spec))).toEqual({ ...spec, flags: 0 });
      }),
    );
  });

  test('rules', () => {
    const rule = fc.record({
      family: fc.constant(4 as const),
      priority: index,
      table: fc.integer({ min: 1, max: 0xffff_ffff }),
      action: fc.constant('lookup' as const),
      mark: maybe(fc.record({ value: index, mask: index })),
      src: maybe(fc.constant('10.0.0.0/8')),
      iif: maybe(fc.constant('eth0')),
      suppressPrefixLength: maybe(fc.nat(32)),
      invert: maybe(fc.constant(true as const)),
      protocol: maybe(fc.nat(255)),
    });
    fc.assert(
      fc.property(rule, (spec) => {
        expect(decodeRule(encodeRule(clean(spec) as RuleSpec))).toEqual(clean(spec));
      }),
    );
  });

  test('neighbours and FDB entries', () => {
    const entry = fc.record({
      family: fc.constantFrom(4 as const, 'bridge' as const),
      link: index,
      mac,
      address: ipv4,
      vni: maybe(index),
      port: maybe(port),
      state: fc.constantFrom('permanent' as const, 'reachable' as const),
      flags: fc.nat(255),
    });
    fc.assert(
      fc.property(entry, (spec) => {
        const wanted = clean(spec) as Parameters<typeof encodeNeighbour>[0];
        expect(decodeNeighbour(encodeNeighbour(wanted))).toEqual(wanted);
      }),
    );
  });

  test('addresses', () => {
    fc.assert(
      fc.property(
        fc.record({
          link: index,
          address: fc.constantFrom('192.0.2.1/24', '192.0.2.1/32', '2001:db8::1/64'),
          scope: fc.constantFrom('global' as const, 'link' as const),
          flags: fc.constantFrom(0, 2, 0x200),
        }),
        (spec) => {
          expect(decodeAddress(encodeAddress(spec))).toEqual(spec);
        },
      ),
    );
  });

  test.each<CreatableKind>([
    { kind: 'bridge' },
    { kind: 'bridge', stp: false, multicastSnooping: true, linkLocalLearning: false, groupForwardMask: 0xff08 },
    { kind: 'vrf', table: 1000 },
    {
      kind: 'vxlan',
      external: true,
      port: 4789,
      learning: false,
      udp6ZeroChecksumRx: true,
      sourcePorts: { low: 1000, high: 2000 },
    },
    {
      kind: 'vxlan',
      external: false,
      vni: 7,
      remote: '2001:db8::9',
      local: '2001:db8::1',
      port: 4789,
      underlay: 3,
      ttl: 64,
    },
    { kind: 'geneve', external: true, port: 6081, udp6ZeroChecksumTx: true },
    { kind: 'geneve', external: false, vni: 1, remote: '192.0.2.9', port: 6081 },
    { kind: 'ipip', external: true },
    { kind: 'ipip', external: false, local: '192.0.2.1', remote: '192.0.2.9', ttl: 64, pathMtuDiscovery: true },
  ])('links of kind %j', (kind) => {
    const link = decodeLink(
      encodeLink(0, { name: 'x0', kind, mtu: 1400, mac: '02:00:00:00:00:01', alias: 'ours', up: true, arp: false }),
    );
    expect(link).toMatchObject({
      name: 'x0',
      mtu: 1400,
      mac: '02:00:00:00:00:01',
      alias: 'ours',
      up: true,
      arp: false,
    });
    expect(link.kind).toEqual(kind);
  });
});

test('writers side by side do not touch each other, and nests survive growing', () => {
  const [one, two] = [new MessageWriter(8), new MessageWriter(8)];
  one.nest(1, () => {
    one.attributeU32(2, 7);
    two.attributeU32(3, 8);
    one.nest(4, () => one.attribute(5, new Uint8Array(3000).fill(9)));
  });
  const outer = readAttributes(one.bytes()).get(1)?.nested();
  expect(outer?.get(2)?.u32).toBe(7);
  expect(outer?.get(4)?.nested().get(5)?.bytes).toEqual(new Uint8Array(3000).fill(9));
  expect(readAttributes(two.bytes()).get(3)?.u32).toBe(8);
});

describe('what cannot be is refused before anything is sent', () => {
  test.each<[string, () => unknown]>([
    ['a link name of 16 characters', () => encodeLink(0, { name: 'a234567890123456' })],
    ['a link name with a slash', () => encodeLink(0, { name: 'a/b' })],
    ['a MAC of five octets', () => encodeLink(1, { mac: '02:00:00:00:00' })],
    ['a prefix without length', () => encodeRoute({ dst: '10.0.0.0' })],
    ['a prefix length past 32', () => encodeRoute({ dst: '10.0.0.0/33' })],
    ['a weight of 0', () => encodeNexthop({ id: 1, group: [{ id: 2, weight: 0 }] })],
    ['an IPv6 source in an IPv4 rule', () => encodeRule({ family: 4, priority: 1, src: '2001:db8::/32' })],
    [
      'an IPv4 segment',
      () => encodeRoute({ dst: '2001:db8::/32', encap: { type: 'seg6', mode: 'encap', segments: ['192.0.2.1'] } }),
    ],
    ['an attribute past 64 KiB', () => new MessageWriter().nest(1, (writer) => writer.raw(new Uint8Array(70_000)))],
  ])('%s', (_, attempt) => {
    expect(attempt).toThrow(RangeError);
  });
});

/** Random bytes, and real messages with a few bytes changed or cut off: the second kind reaches deeper. */
const real = [
  encodeRoute({
    dst: '10.0.0.0/8',
    nexthops: [{ link: 2, gateway: '192.0.2.1' }],
    mtu: 1400,
    encap: { type: 'ip', id: 1, dst: '192.0.2.1' },
  }),
  encodeRoute({ dst: '2001:db8::/32', encap: { type: 'seg6', mode: 'encap', segments: ['2001:db8::1'] } }),
  encodeLink(2, {
    name: 'x0',
    kind: { kind: 'vxlan', port: 4789, sourcePorts: { low: 1, high: 2 } },
    mac: '02:00:00:00:00:01',
  }),
  encodeNexthop({ id: 1, group: [{ id: 2 }], resilient: { buckets: 8 } }),
  encodeRule({ family: 6, priority: 1, src: '2001:db8::/32' }),
  encodeNeighbour({ family: 'bridge', link: 1, mac: '02:00:00:00:00:01', address: '192.0.2.1' }),
];
const hostile = fc.oneof(
  fc.uint8Array({ maxLength: 120 }),
  fc
    .tuple(fc.constantFrom(...real), fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 4 }), fc.nat(200))
    .map(([bytes, changes, length]) => {
      const copy = bytes.slice(0, Math.max(1, bytes.length - (length > 150 ? length - 150 : 0)));
      for (const [at, byte] of changes) copy[at % copy.length] = byte;
      return copy;
    }),
);

describe('decoders', () => {
  const events = [16, 17, 20, 21, 24, 25, 28, 29, 32, 33, 104, 105];
  test.each<[string, (bytes: Uint8Array) => unknown]>([
    ['attributes', readAttributes],
    ['attribute lists', readAttributeList],
    ['messages', (bytes) => readMessages(bytes, () => {})],
    ['links', decodeLink],
    ['addresses', decodeAddress],
    ['routes', decodeRoute],
    ['nexthops', decodeNexthop],
    ['rules', decodeRule],
    ['neighbours', decodeNeighbour],
    ['settings', decodeNetconf],
    ['qdiscs', decodeQdisc],
    ['filters', decodeFilter],
    ['generic families', decodeFamily],
    ['generic messages', readGenericAttributes],
    ['events', (body) => events.map((type) => decodeEvent({ type, body, port: 0 }))],
  ])('of %s read any bytes, or refuse them with NetlinkDecodeError', (_, decode) => {
    fc.assert(
      fc.property(hostile, (bytes) => {
        try {
          decode(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(NetlinkDecodeError);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('messages come out as they went in', () => {
    const body = Uint8Array.of(1, 2, 3);
    const bytes = new Uint8Array(HEADER_BYTES + 4);
    writeMessage(bytes, 0, { type: 24, flags: 5, body }, 77);
    const seen: unknown[] = [];
    readMessages(bytes, (message) => seen.push(message));
    expect(seen).toEqual([{ type: 24, flags: 5, seq: 77, port: 0, body }]);
  });
});
