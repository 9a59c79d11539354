import { expect, test } from 'vitest';
import { podLinkLocal } from './pod-port.ts';

test.each([
  ['02:00:00:00:00:0a', 'fe80::ff:fe00:a'],
  ['00:00:5e:00:53:01', 'fe80::200:5eff:fe00:5301'], // RFC 4291, appendix A: the universal bit is inverted
  ['ff:ff:ff:ff:ff:ff', 'fe80::fdff:ffff:feff:ffff'],
])('the link-local address of %s', (mac, address) => {
  expect(podLinkLocal(mac)).toBe(address);
});
