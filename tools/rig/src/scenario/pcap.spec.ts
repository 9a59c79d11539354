import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { isNeighborDiscovery, isWireGuard, parseFrame, parsePcap } from './pcap.ts';

/** A pcap file of these frames. */
const fileOf = (frames: readonly Uint8Array[]): Buffer => {
  const header = Buffer.alloc(24);
  header.writeUInt32LE(0xa1b2c3d4, 0);
  const records = frames.map((frame) => {
    const record = Buffer.alloc(16);
    record.writeUInt32LE(frame.length, 8);
    record.writeUInt32LE(frame.length, 12);
    return Buffer.concat([record, frame]);
  });
  return Buffer.concat([header, ...records]);
};

/** Ethernet, IPv4 without options, UDP. */
const udpFrame = (payload: Uint8Array): Buffer => {
  const frame = Buffer.alloc(42);
  frame.writeUInt16BE(0x0800, 12);
  frame[14] = 0x45;
  frame[23] = 17;
  frame.set([203, 0, 113, 1], 26);
  frame.set([203, 0, 113, 2], 30);
  frame.writeUInt16BE(51821, 34);
  frame.writeUInt16BE(51822, 36);
  return Buffer.concat([frame, payload]);
};

test('addresses, ports and payload of a datagram are read', () => {
  const [packet] = parsePcap(fileOf([udpFrame(Buffer.from('hello'))]));
  expect(packet).toMatchObject({
    source: '203.0.113.1',
    destination: '203.0.113.2',
    protocol: 17,
    sourcePort: 51821,
    destinationPort: 51822,
  });
  expect(packet?.payload.toString()).toBe('hello');
});

test('addresses and ports of a datagram over IPv6 are read, and one that is cut off is none', () => {
  const frame = Buffer.alloc(70);
  frame.writeUInt16BE(0x86dd, 12);
  frame[14] = 0x60;
  frame[20] = 17;
  frame.set([0xfd, 0x64, 0, 1], 22);
  frame.set([0x20, 0x01, 0x0d, 0xb8], 38);
  frame[53] = 1;
  frame.writeUInt16BE(9000, 54);
  frame.writeUInt16BE(4789, 56);
  const [packet, cut] = parsePcap(fileOf([frame, frame.subarray(0, 50)]));
  expect(packet).toMatchObject({
    source: 'fd64:1::',
    destination: '2001:db8::1',
    protocol: 17,
    sourcePort: 9000,
    destinationPort: 4789,
  });
  expect(packet?.payload.length).toBe(8);
  expect(cut).toMatchObject({ source: undefined, destinationPort: undefined });
});

test('a WireGuard message is told from other datagrams', () => {
  const message = (first: number[]): Buffer => udpFrame(Buffer.concat([Buffer.from(first), Buffer.alloc(60)]));
  const found = parsePcap(
    fileOf([
      message([4, 0, 0, 0]),
      message([1, 0, 0, 0]),
      message([5, 0, 0, 0]),
      message([4, 0, 1, 0]),
      udpFrame(Buffer.from([4, 0, 0, 0])),
    ]),
  );
  expect(found.map(isWireGuard)).toEqual([true, true, false, false, false]);
});

test('neighbor discovery is told from echo requests, and from what a router has forwarded', () => {
  const icmp = (type: number, hopLimit: number): Buffer => {
    const frame = Buffer.alloc(62);
    frame.writeUInt16BE(0x86dd, 12);
    frame.set([0x60, 0, 0, 0, 0, 8, 58, hopLimit], 14);
    frame[54] = type;
    return frame;
  };
  const found = parsePcap(fileOf([icmp(133, 255), icmp(137, 255), icmp(133, 254), icmp(128, 255), icmp(132, 255)]));
  expect(found.map(isNeighborDiscovery)).toEqual([true, true, false, false, false]);
  expect(isNeighborDiscovery(parseFrame(Buffer.alloc(20)))).toBe(false);
});

test('any frames, and a file cut anywhere, are read without an error', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 80 })), fc.nat(), (frames, cut) => {
      const file = fileOf(frames);
      expect(parsePcap(file)).toHaveLength(frames.length);
      parsePcap(file.subarray(0, 24 + (cut % (file.length - 23))));
    }),
  );
});

test('what is no capture is refused', () => {
  expect(() => parsePcap(Buffer.from('not a capture at all, really not'))).toThrow('no little-endian pcap file');
});
