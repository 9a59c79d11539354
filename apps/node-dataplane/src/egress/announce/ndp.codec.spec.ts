import { macText } from '@unbounded/ip';
import { addressText } from '@unbounded/netlink';
import { neighborAdvertisement } from '@unbounded/testing/packets';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeNeighborMessage,
  encodeNeighborMessage,
  multicastMac,
  type NeighborMessage,
  neighborAnnouncement,
  neighborProbe,
  solicitedNodeGroup,
} from './ndp.codec.ts';

const MAC = '02:00:00:00:00:07';
const ADDRESS = '2001:db8::12:3456';

const macs = fc.uint8Array({ minLength: 6, maxLength: 6 }).map(macText);
const addressesOf = (first: number): fc.Arbitrary<string> =>
  fc.uint8Array({ minLength: 15, maxLength: 15 }).map((rest) => addressText(Uint8Array.of(first, ...rest)));
const common = {
  sourceMac: macs,
  source: addressesOf(0x20),
  destination: addressesOf(0xff),
  target: addressesOf(0x20),
};
const messages: fc.Arbitrary<NeighborMessage> = fc.oneof(
  fc.record(
    { ...common, kind: fc.constant('advertisement' as const), override: fc.boolean(), linkLayerMac: macs },
    { requiredKeys: ['kind', 'override', 'sourceMac', 'source', 'destination', 'target'] },
  ),
  fc.record(
    { ...common, kind: fc.constant('solicitation' as const), linkLayerMac: macs },
    { requiredKeys: ['kind', 'sourceMac', 'source', 'destination', 'target'] },
  ),
);

const announcement = neighborAnnouncement(ADDRESS, MAC);
/** The checksum in the place of the former, so that what was changed is what is refused. */
const changed = (frame: Uint8Array, at: number, value: number): Uint8Array => {
  const copy = Uint8Array.from(frame);
  const sum = new DataView(copy.buffer);
  // RFC 1624: what a byte grows, the complement of the sum shrinks.
  const difference = (value - copy[at]!) * (at % 2 === 0 ? 256 : 1);
  copy[at] = value;
  const covered = ~sum.getUint16(56) & 0xffff;
  sum.setUint16(56, ~((((covered + difference) % 0xffff) + 0xffff) % 0xffff) & 0xffff);
  return copy;
};

describe('neighbor messages', () => {
  test('come out as they went in, whatever pads them', () => {
    fc.assert(
      fc.property(messages, fc.uint8Array({ maxLength: 40 }), (message, padding) => {
        const frame = Uint8Array.from([...encodeNeighborMessage(message), ...padding]);
        expect(decodeNeighborMessage(frame)).toEqual(message);
      }),
    );
  });

  test('are whole or none', () => {
    for (let length = 0; length < announcement.length; length++)
      expect(decodeNeighborMessage(announcement.subarray(0, length))).toBeUndefined();
  });

  test('whatever the bytes, there is a message or none', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 120 }), (bytes) => void decodeNeighborMessage(bytes)));
  });

  test('any bit that is not as it was sent makes it none, beginning at the IPv6 header, but for what nobody covers', () => {
    const uncovered = (at: number): boolean => at > 14 && at < 18; // traffic class and flow label
    for (let at = 15; at < announcement.length; at++) {
      const damaged = announcement.map((byte, place) => (place === at ? byte ^ 1 : byte));
      expect(decodeNeighborMessage(damaged) === undefined, `byte ${at}`).toBe(!uncovered(at));
    }
  });

  test.each([
    ['a hop limit below 255: it crossed a router', 21, 254],
    ['a code', 55, 1],
    ['an option without a length', 79, 0],
    ['an option longer than the packet', 79, 2],
    ['a multicast target', 62, 0xff],
    ['another ICMPv6 type', 54, 134],
  ])('with %s there is none', (_, at, value) => {
    const frame =
      at < 22 ? announcement.map((byte, place) => (place === at ? value : byte)) : changed(announcement, at, value);
    expect(decodeNeighborMessage(changed(announcement, 58, 0))).toMatchObject({ override: false });
    expect(decodeNeighborMessage(frame)).toBeUndefined();
  });

  test('a probe that names a MAC is none', () => {
    const message = { ...decodeNeighborMessage(neighborProbe(ADDRESS, MAC))!, linkLayerMac: MAC };
    expect(decodeNeighborMessage(encodeNeighborMessage(message))).toBeUndefined();
  });

  test('have addresses of IPv6', () => {
    expect(() => neighborProbe('192.0.2.1', MAC)).toThrow('address is 192.0.2.1: it must be an IPv6 address');
    expect(() => neighborAnnouncement(ADDRESS, '02:00')).toThrow('"02:00" is not a MAC address');
  });
});

describe('a probe and an announcement', () => {
  test('the probe goes to those who may have the address, and claims nothing', () => {
    expect(solicitedNodeGroup(ADDRESS)).toBe('ff02::1:ff12:3456');
    expect(multicastMac('ff02::1:ff12:3456')).toBe('33:33:ff:12:34:56');
    const probe = neighborProbe(ADDRESS, MAC);
    expect(macText(probe.subarray(0, 6))).toBe('33:33:ff:12:34:56');
    expect(decodeNeighborMessage(probe)).toEqual({
      kind: 'solicitation',
      sourceMac: MAC,
      source: '::',
      destination: 'ff02::1:ff12:3456',
      target: ADDRESS,
    });
  });

  test('the announcement is byte by byte what another implementation makes', () => {
    expect([...announcement]).toEqual([...neighborAdvertisement({ mac: MAC, ip: ADDRESS })]);
  });
});
