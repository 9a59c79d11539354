import { expect, test } from 'vitest';

import { Admission, limitedAs } from './admission.ts';

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
])('%s counts as %s', (address, as) => expect(limitedAs(address)).toBe(as));

test('an address gets a burst, and then so many connections a second', () => {
  const limits = { maxConnections: 1e6, maxConnectionsPerAddress: 1e6, newConnectionsPerSecond: 10 };
  const admission = new Admission(limits);
  const take = (now: number) =>
    Array.from({ length: 100 }, () => admission.enterAddress('a', now)).filter((refusal) => refusal === undefined)
      .length;
  expect([take(0), take(100), take(1000), take(60_000)]).toEqual([50, 1, 9, 50]);
});

test('addresses without connections are forgotten', () => {
  const limits = { maxConnections: 10, maxConnectionsPerAddress: 1, newConnectionsPerSecond: 1 };
  const admission = new Admission(limits);
  expect(admission.enterAddress('a', 0)).toBeUndefined();
  admission.sweep(60_000);
  expect(admission.enterAddress('a', 60_000)).toBe('address');
  admission.leaveAddress('a');
  admission.sweep(120_000);
  expect(admission.enterAddress('a', 120_000)).toBeUndefined();
});
