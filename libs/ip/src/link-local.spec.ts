import { expect, test } from 'vitest';
import { formatAddress } from './address.ts';
import { linkLocalOf } from './link-local.ts';

test.each([
  ['02:00:00:00:00:0a', 'fe80::ff:fe00:a'],
  ['52:54:00:12:34:56', 'fe80::5054:ff:fe12:3456'],
  ['00:00:5e:00:53:01', 'fe80::200:5eff:fe00:5301'], // RFC 4291, appendix A: the universal bit is inverted
  ['ff:ff:ff:ff:ff:ff', 'fe80::fdff:ffff:feff:ffff'],
])('the link-local address of MAC address %s is %s', (mac, address) =>
  expect(formatAddress(linkLocalOf(mac))).toBe(address),
);
