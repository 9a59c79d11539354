import { expect, test } from 'vitest';
import { formatAddress } from './address.ts';
import { linkLocalOf } from './link-local.ts';

test.each([
  [[0x02, 0x00, 0x5e, 0x10, 0x00, 0x01], 'fe80::5eff:fe10:1'],
  [[0x52, 0x54, 0x00, 0x12, 0x34, 0x56], 'fe80::5054:ff:fe12:3456'],
  [[0x00, 0x00, 0x00, 0x00, 0x00, 0x01], 'fe80::200:ff:fe00:1'],
])('the link-local address of MAC address %j is %s', (mac, address) =>
  expect(formatAddress(linkLocalOf(Uint8Array.from(mac)))).toBe(address),
);
