import { macText } from '@unbounded/ip';
import { addressText } from '@unbounded/netlink';
import { gratuitousArp } from '@unbounded/testing/packets';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ARP, type ArpPacket, arpAnnouncements, arpProbe, decodeArp, encodeArp } from './arp.codec.ts';

const MAC = '02:00:00:00:00:07';
const ADDRESS = '192.0.2.7';

const macs = fc.uint8Array({ minLength: 6, maxLength: 6 }).map(macText);
const addresses = fc.uint8Array({ minLength: 4, maxLength: 4 }).map(addressText);
const packets: fc.Arbitrary<ArpPacket> = fc.record({
  operation: fc.integer({ min: 0, max: 0xffff }),
  senderMac: macs,
  senderAddress: addresses,
  targetMac: macs,
  targetAddress: addresses,
});

describe('ARP packets', () => {
  test('come out as they went in, whatever pads them', () => {
    fc.assert(
      fc.property(packets, fc.uint8Array({ maxLength: 40 }), (packet, padding) => {
        expect(decodeArp(Uint8Array.from([...encodeArp(packet), ...padding]))).toEqual(packet);
      }),
    );
  });

  test('are whole or none', () => {
    const whole = arpProbe(ADDRESS, MAC);
    for (let length = 0; length < whole.length; length++) expect(decodeArp(whole.subarray(0, length))).toBeUndefined();
  });

  test('are of IPv4 over Ethernet: with another type or length there is none', () => {
    for (let at = 12; at < 20; at++)
      expect(
        decodeArp(arpProbe(ADDRESS, MAC).map((byte, place) => (place === at ? byte ^ 0x10 : byte))),
        `byte ${at}`,
      ).toBeUndefined();
  });

  test('whatever the bytes, there is a packet or none', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => void decodeArp(bytes)));
  });

  test('have addresses of IPv4', () => {
    expect(() => arpProbe('2001:db8::1', MAC)).toThrow('targetAddress is 2001:db8::1: it must be an IPv4 address');
    expect(() => arpProbe(ADDRESS, '02:00')).toThrow('"02:00" is not a MAC address');
  });
});

describe('a probe and an announcement', () => {
  test('the probe claims nothing', () => {
    expect(decodeArp(arpProbe(ADDRESS, MAC))).toEqual({
      operation: ARP.request,
      senderMac: MAC,
      senderAddress: '0.0.0.0',
      targetMac: '00:00:00:00:00:00',
      targetAddress: ADDRESS,
    });
  });

  test('the announcement is a request and a reply', () => {
    const announced = { senderMac: MAC, senderAddress: ADDRESS, targetAddress: ADDRESS };
    expect(arpAnnouncements(ADDRESS, MAC).map(decodeArp)).toEqual([
      { ...announced, operation: ARP.request, targetMac: '00:00:00:00:00:00' },
      { ...announced, operation: ARP.reply, targetMac: MAC },
    ]);
  });

  test('the reply is what another implementation makes, but for the target MAC', () => {
    const other = gratuitousArp({ mac: MAC, ip: ADDRESS });
    const reply = arpAnnouncements(ADDRESS, MAC)[1]!;
    expect([...reply.subarray(0, 32), ...reply.subarray(38)]).toEqual([
      ...other.subarray(0, 32),
      ...other.subarray(38),
    ]);
  });
});
