import { AddressSet, formatAddress, hostPrefix, parseAddress, parsePrefix } from '@unbounded/ip';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { chooseAddresses, type Pool, PoolExhaustedError } from './index.ts';

const poolOf = (prefixes: readonly string[], gateways: readonly string[] = []): Pool => ({
  prefixes: prefixes.map(parsePrefix),
  gateways: gateways.map(parseAddress),
});
const seed = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });

it('chooses an address of each family that is nobody’s, neither network, broadcast nor gateway', () => {
  const pool = poolOf(['192.0.2.0/29', '2001:db8::/125'], ['192.0.2.1', '2001:db8::1']);
  fc.assert(
    fc.property(seed, fc.subarray([2, 3, 4, 5], { maxLength: 3 }), (some, takenEnds) => {
      const taken = takenEnds.flatMap((end) => [`192.0.2.${end}`, `2001:db8::${end}`]).map(parseAddress);
      const chosen = chooseAddresses(pool, taken, some).map(formatAddress);
      expect(chosen).toHaveLength(2);
      for (const text of ['192.0.2.0', '192.0.2.1', '192.0.2.7', '2001:db8::', '2001:db8::1'])
        expect(chosen).not.toContain(text);
      expect(AddressSet.of(taken.map(hostPrefix)).has(parseAddress(chosen[0]!))).toBe(false);
    }),
  );
});

it('gives out each address once, and then says of which family there is none', () => {
  const pool = poolOf(['192.0.2.0/30', '198.51.100.0/31', '2001:db8::/64']);
  const taken = new Map<string, ReturnType<typeof parseAddress>>();
  for (const _ of Array.from({ length: 4 }))
    for (const one of chooseAddresses(pool, taken.values(), 12345n)) taken.set(formatAddress(one), one);
  expect([...taken.keys()].filter((text) => !text.includes(':')).sort()).toEqual([
    '192.0.2.1',
    '192.0.2.2',
    '198.51.100.0',
    '198.51.100.1',
  ]);
  expect(() => chooseAddresses(pool, taken.values(), 1n)).toThrow(PoolExhaustedError);
  expect(() => chooseAddresses(pool, taken.values(), 1n)).toThrow('no IPv4 address of the network is free');
});

it('of 50 that choose at once next to none choose the same', () => {
  const pool = poolOf(['10.0.0.0/16']);
  const random = [...Array(50).keys()].map((at) => BigInt(at) * 0x9e37_79b9_7f4a_7c15n);
  const chosen = random.map((one) => formatAddress(chooseAddresses(pool, [], one % 2n ** 64n)[0]!));
  expect(new Set(chosen).size).toBeGreaterThan(45);
});
