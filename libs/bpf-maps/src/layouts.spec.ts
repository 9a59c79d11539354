import { formatPrefix, parsePrefix, prefixOf } from '@unbounded/ip';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Codec,
  counter,
  decode,
  type EchoAddresses,
  echoAddresses,
  encapConfig,
  encode,
  type Endpoint,
  endpointV4,
  endpointV6,
  forwarderKey,
  GROUP_MEMBERS,
  groupKey,
  type GroupMember,
  innerMac,
  localAddresses,
  lpmKeyV4,
  lpmKeyV6,
  MAPS,
  nexthopGroup,
  type Protocol,
  statsKey,
} from './index.ts';

const hex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
const u32 = fc.integer({ min: 0, max: 0xffff_ffff });
const ipv4 = fc.ipV4().filter((text) => text !== '0.0.0.0');
const ipv6 = fc.constantFrom('2001:db8::1', 'fd00::a:1', '::1');
const protocol = fc.constantFrom<Protocol>('geneve', 'vxlan', 'ipip', 'wireguard', 'none');
const without = <T extends object>(value: T): T =>
  Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as T;
const hop = (remote: fc.Arbitrary<string>) =>
  fc.record({
    remote: fc.option(remote, { nil: undefined }),
    vni: u32,
    ifindex: u32,
    protocol,
    setKey: fc.boolean(),
    healthy: fc.boolean(),
    ownSource: fc.constantFrom(true, undefined),
    echo: fc.constantFrom(true, undefined),
  });
const mac = fc.option(
  ipv4.map((address) => innerMac(address)),
  { nil: undefined },
);
const endpoint = (remote: fc.Arbitrary<string>): fc.Arbitrary<Endpoint> =>
  fc
    .tuple(hop(remote), fc.option(fc.integer({ min: 0, max: 0xffff }), { nil: undefined }), mac)
    .map(([base, group, own]) => without({ ...base, group, mac: group === undefined ? own : undefined }) as Endpoint);
const member: fc.Arbitrary<GroupMember> = fc
  .tuple(hop(fc.oneof(ipv4, ipv6)), u32, mac)
  .map(([base, weight, own]) => without({ ...base, weight, mac: own }) as GroupMember);

const roundTrips = <T>(codec: Codec<T>, values: fc.Arbitrary<T>): void =>
  fc.assert(
    fc.property(values, (value) => {
      expect(decode(codec, encode(codec, value))).toEqual(value);
    }),
  );

test('a forwarder is known by its underlay address, in either family', () => {
  expect(hex(encode(forwarderKey, '192.0.2.7'))).toBe('070200c0' + '00'.repeat(16));
  expect(hex(encode(forwarderKey, '2001:db8::7'))).toBe('20010db800000000000000000000000701000000');
  roundTrips(forwarderKey, fc.oneof(ipv4, ipv6));
});

test('addresses of echoes stand as on the wire; one that is absent is zero', () => {
  expect(hex(encode(echoAddresses, { ipv4: '100.64.1.0', ipv6: 'fd00:1::ff' }))).toBe(
    '64400100fd0000010000000000000000000000ff',
  );
  expect(encode(echoAddresses, {})).toEqual(new Uint8Array(20));
  expect(() => encode(echoAddresses, { ipv4: 'fd00::1' })).toThrow(/ipv4 is fd00::1/);
  const optional = (address: fc.Arbitrary<string>) => fc.option(address, { nil: undefined });
  roundTrips(
    echoAddresses,
    fc.record({ ipv4: optional(ipv4), ipv6: optional(ipv6) }).map((value) => without(value) as EchoAddresses),
  );
});

describe('records', () => {
  test('an IPv4 endpoint is laid out as the program reads it', () => {
    const value: Endpoint = {
      remote: '192.0.2.7',
      vni: 1,
      ifindex: 12,
      protocol: 'vxlan',
      setKey: true,
      healthy: true,
    };
    expect(hex(encode(endpointV4, value))).toBe('070200c0 01000000 0c000000 03000000 02000000'.replaceAll(' ', ''));
    expect(hex(encode(lpmKeyV4, '100.64.2.0/24'))).toBe('1800000064400200');
  });

  test('a MAC that does not follow from the remote address is in the upper halves of flags and protocol', () => {
    const hop = { remote: '192.0.2.7', vni: 1, ifindex: 12, protocol: 'vxlan', setKey: true, healthy: true } as const;
    const value: Endpoint = { ...hop, mac: '02:0a:01:02:03:ff' };
    expect(hex(encode(endpointV4, value))).toBe('070200c0 01000000 0c000000 1300010a 02000302'.replaceAll(' ', ''));
    expect(() => encode(endpointV4, { ...value, mac: '02:0a:01:02:03:04' })).toThrow(/must be like/);
    expect(() => encode(endpointV4, { ...value, group: 1 })).toThrow(/beside group/);
  });

  test('a group stands in the upper half of the flags', () => {
    const value: Endpoint = { vni: 0, ifindex: 0, protocol: 'none', setKey: false, healthy: false, group: 0xffff };
    expect(hex(encode(endpointV4, value)).slice(24, 32)).toBe('0800ffff');
  });

  test('every layout has the size of its map', () => {
    expect([lpmKeyV4.size, endpointV4.size]).toEqual([
      MAPS.unbounded_endpoints_v4.keyBytes,
      MAPS.unbounded_endpoints_v4.valueBytes,
    ]);
    expect([lpmKeyV6.size, endpointV6.size]).toEqual([
      MAPS.unbounded_endpoints_v6.keyBytes,
      MAPS.unbounded_endpoints_v6.valueBytes,
    ]);
    expect([groupKey.size, nexthopGroup.size]).toEqual([
      MAPS.unbounded_nexthop_groups.keyBytes,
      MAPS.unbounded_nexthop_groups.valueBytes,
    ]);
    expect([statsKey.size, localAddresses.size, counter.size, encapConfig.size]).toEqual([
      4,
      MAPS.unbounded_locals.valueBytes,
      MAPS.unbounded_stats.valueBytes,
      MAPS.unbounded_config.valueBytes,
    ]);
  });

  test('endpoints, groups and prefixes come back as they were', () => {
    expect.hasAssertions();
    roundTrips(endpointV4, endpoint(ipv4));
    roundTrips(endpointV6, endpoint(fc.oneof(ipv4, ipv6)));
    roundTrips(nexthopGroup, fc.array(member, { maxLength: GROUP_MEMBERS }));
    roundTrips(encapConfig, fc.constantFrom({ anySource: true }, { anySource: false, ownMac: '02:0a:01:00:15:ff' }));
    roundTrips(
      localAddresses,
      fc.constantFrom({}, { ipv4: '192.0.2.7' }, { ipv6: '2001:db8::7' }, { ipv4: '10.1.0.30', ipv6: 'fd00:1::30' }),
    );
    roundTrips(lpmKeyV6, fc.constantFrom('::/0', '2001:db8::/32', 'fd00::1/128'));
  });

  test('any bytes of the right length decode to something', () => {
    for (const codec of [
      endpointV4,
      endpointV6,
      nexthopGroup,
      lpmKeyV4,
      lpmKeyV6,
      encapConfig,
      localAddresses,
      statsKey,
    ] as Codec<unknown>[]) {
      fc.assert(
        fc.property(
          fc.uint8Array({ minLength: codec.size, maxLength: codec.size }),
          (bytes) => void decode(codec, bytes),
        ),
      );
      expect(() => decode(codec, new Uint8Array(codec.size - 1))).toThrow(RangeError);
    }
  });

  test.each([
    [
      'an IPv6 remote in an IPv4 record',
      () =>
        encode(endpointV4, {
          remote: '2001:db8::1',
          vni: 1,
          ifindex: 1,
          protocol: 'vxlan',
          setKey: true,
          healthy: true,
        }),
    ],
    [
      'a group number past 16 bits',
      () => encode(endpointV4, { vni: 1, ifindex: 1, protocol: 'vxlan', setKey: true, healthy: true, group: 0x1_0000 }),
    ],
    [
      'a negative device',
      () => encode(endpointV4, { vni: 1, ifindex: -1, protocol: 'vxlan', setKey: true, healthy: true }),
    ],
    [
      '17 members',
      () =>
        encode(
          nexthopGroup,
          Array.from({ length: 17 }, (): GroupMember => ({
            vni: 1,
            ifindex: 1,
            protocol: 'vxlan',
            setKey: true,
            healthy: true,
            weight: 1,
          })),
        ),
    ],
    ['an IPv6 prefix in the IPv4 trie', () => encode(lpmKeyV4, '2001:db8::/32')],
    ['an IPv6 address in the place of an IPv4 one', () => encode(localAddresses, { ipv4: '2001:db8::1' })],
    ['an IPv4 address in the place of an IPv6 one', () => encode(localAddresses, { ipv6: '192.0.2.1' })],
    ['a MAC that is none', () => encode(encapConfig, { ownMac: '02:00', anySource: false })],
  ])('%s is refused', (_, attempt) => {
    expect(attempt).toThrow(RangeError);
  });

  test.each([
    ['192.0.2.7', '02:c0:00:02:07:ff'],
    ['2001:db8::a:2', '02:e9:28:97:b6:ff'],
    ['fd10:1::21', '02:bc:d1:fc:b2:ff'],
    ['fd10:2::21', '02:c2:c5:9e:aa:ff'],
  ])('the inner MAC for %s is %s', (remote, mac) => {
    expect(innerMac(remote)).toBe(mac);
  });
});

describe('the quick way through IPv4 text', () => {
  const octet = fc.oneof(
    fc.nat(255).map(String),
    fc.constantFrom('256', '00', '01', '', '1000', 'x', '-1', ' 1', '1e1'),
  );
  const length = fc.oneof(fc.nat(33).map(String), fc.constantFrom('', '08', '/', 'x', '-1', '100', ' 8', '8 '));

  test('says what the general parser says: the same bytes, or the same refusal', () => {
    const general = (text: string): string => {
      const prefix = parsePrefix(text);
      const key = new DataView(new ArrayBuffer(8));
      key.setUint32(0, prefix.length, true);
      key.setUint32(4, Number(prefix.address), false);
      return hex(new Uint8Array(key.buffer));
    };
    const outcome = (run: () => string): string => {
      try {
        return run();
      } catch (error) {
        return (error as Error).message;
      }
    };
    fc.assert(
      fc.property(fc.array(octet, { minLength: 3, maxLength: 5 }), length, (octets, tail) => {
        const text = `${octets.join('.')}/${tail}`;
        expect(outcome(() => hex(encode(lpmKeyV4, text)))).toBe(outcome(() => general(text)));
      }),
      { numRuns: 2000 },
    );
    fc.assert(
      fc.property(fc.nat(0xffff_ffff), fc.nat(32), (value, bits) => {
        const text = formatPrefix(prefixOf({ family: 4, value: BigInt(value) }, bits));
        expect(hex(encode(lpmKeyV4, text))).toBe(general(text));
        expect(decode(lpmKeyV4, encode(lpmKeyV4, text))).toBe(text);
      }),
    );
  });
});
