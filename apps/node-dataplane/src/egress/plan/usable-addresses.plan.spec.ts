import { expect, test } from 'vitest';
import { usableAddresses } from './usable-addresses.plan.ts';

const given = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4', '2001:db8::1', '2001:db8::2'].map((address) => ({
  address,
  device: 'eth0',
}));
const textsOf = (addresses: readonly { readonly address: string }[]): string[] =>
  addresses.map(({ address }) => address);
const nothing = { foreign: new Map<string, string>(), had: new Set<string>() };

test('all of them, while they are not too many', () => {
  expect(usableAddresses(given, nothing)).toEqual({ addresses: given, problems: [] });
});

test('of too many those that the node has stay, the surplus is named, and the other family is not concerned', () => {
  const { addresses, problems } = usableAddresses(given, { ...nothing, had: new Set(['192.0.2.4']), limit: 2 });
  expect(textsOf(addresses)).toEqual(['192.0.2.1', '192.0.2.4', '2001:db8::1', '2001:db8::2']);
  expect(problems).toEqual([
    {
      reason: 'EgressAddressesTooMany',
      message: expect.stringContaining(
        'a node can have 2 of IPv4, and this one was given 4: nothing leaves with 192.0.2.2, 192.0.2.3;',
      ),
    },
  ]);
});

test("one that the node has by another one's doing is none of them", () => {
  const { addresses, problems } = usableAddresses(given, { ...nothing, foreign: new Map([['192.0.2.1', 'vip']]) });
  expect(addresses).toEqual(given.slice(1));
  expect(problems).toMatchObject([{ reason: 'EgressAddressInUse' }]);
});
