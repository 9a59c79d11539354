import { formatAddress, parseAddress } from '@unbounded/ip';
import { expect, test } from 'vitest';
import { addressesOfPort, withLinkLocals } from './link-local.ts';
import type { PlannedNeighbor } from './planned.ts';

test.each([
  ['a port with IPv6', ['192.0.2.1', '2001:db8::1'], ['192.0.2.1', '2001:db8::1', 'fe80::ff:fe00:1']],
  ['one to which it was given', ['2001:db8::1', 'fe80::ff:fe00:1'], ['2001:db8::1', 'fe80::ff:fe00:1']],
  ['one with another one', ['fe80::7'], ['fe80::7', 'fe80::ff:fe00:1']],
  ['one with IPv4 alone', ['192.0.2.1'], ['192.0.2.1']],
  ['one without addresses', [], []],
])('%s has %j, and speaks for %j', (_, given, speaksFor) =>
  expect(addressesOfPort({ mac: '02:00:00:00:00:01', addresses: given.map(parseAddress) }).map(formatAddress)).toEqual(
    speaksFor,
  ),
);

const neighbor = (network: number, ip: string, mac: string): PlannedNeighbor => ({
  network,
  ip: parseAddress(ip),
  mac,
});

test('each MAC address with IPv6 has a link-local neighbor in its network, and one that is listed stays', () => {
  const [one, two] = ['02:00:00:00:00:01', '02:00:00:00:00:02'];
  const listed = [
    neighbor(7, '192.0.2.1', one),
    neighbor(7, '2001:db8::1', one),
    neighbor(7, '2001:db8::11', one),
    neighbor(7, '192.0.2.2', two),
    neighbor(8, '2001:db8::1', one),
    neighbor(8, '2001:db8::2', two),
    neighbor(8, 'fe80::ff:fe00:2', one), // of a gateway that says so itself
  ];
  const all = withLinkLocals(listed);
  expect(all.slice(0, listed.length)).toEqual(listed);
  expect(all.slice(listed.length).map(({ network, ip, mac }) => `${network} ${formatAddress(ip)} ${mac}`)).toEqual([
    `7 fe80::ff:fe00:1 ${one}`,
    `8 fe80::ff:fe00:1 ${one}`,
  ]);
});
