import { expect, test } from 'vitest';
import { inClearOf } from './cleartext.ts';
import { layoutOf } from '../layout/layout.ts';
import { parseFrame } from './pcap.ts';

const inClear = inClearOf(layoutOf({ ip: 'dual' }));

/** Ethernet and IPv4, then UDP to a port, or nothing known. */
const frame = (source: string, destination: string, protocol = 17, port = 51_820, first = 0): boolean => {
  const bytes = Buffer.alloc(90);
  bytes.writeUInt16BE(0x0800, 12);
  bytes[14] = 0x45;
  bytes[23] = protocol;
  bytes.set(source.split('.').map(Number), 26);
  bytes.set(destination.split('.').map(Number), 30);
  bytes.writeUInt16BE(port, 36);
  bytes[42] = first;
  return inClear(parseFrame(bytes));
};

test('a pod’s packet is in the clear in either direction, one between nodes is not', () => {
  expect(frame('100.65.31.2', '10.1.0.31')).toBe(true);
  expect(frame('203.0.113.1', '100.66.31.2', 6)).toBe(true);
  expect(frame('10.1.0.31', '10.1.0.32')).toBe(false);
});

test('VXLAN, GENEVE, IP in IP and GRE do not encrypt', () => {
  for (const port of [4789, 6081]) expect(frame('10.1.0.31', '10.1.0.32', 17, port)).toBe(true);
  for (const protocol of [4, 41, 47]) expect(frame('10.1.0.31', '10.1.0.32', protocol)).toBe(true);
});

test('WireGuard is not in the clear, whatever its ports', () => {
  expect(frame('10.1.0.31', '10.1.0.32', 17, 51_820, 4)).toBe(false);
});

test('a pod’s packet over IPv6 is in the clear', () => {
  const bytes = Buffer.alloc(70);
  bytes.writeUInt16BE(0x86dd, 12);
  bytes[14] = 0x60;
  bytes[20] = 58;
  bytes.set([0xfd, 0x64, 0, 1], 22);
  bytes.set([0x20, 0x01, 0x0d, 0xb8], 38);
  expect(inClear(parseFrame(bytes))).toBe(true);
});
