import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AddressSyntaxError, formatAddress, parseAddress } from './address.ts';
import {
  containsAddress,
  containsPrefix,
  firstAddress,
  formatPrefix,
  lastAddress,
  overlaps,
  parsePrefix,
  prefixOf,
  withoutCovered,
} from './prefix.ts';

const smallPrefix = fc
  .tuple(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 24, max: 32 }))
  .map(([low, length]) => prefixOf({ family: 4, value: 0x0a000000n + BigInt(low) }, length));

describe('prefixes', () => {
  test('a prefix with host bits is refused with the block that was meant', () => {
    expect(() => parsePrefix('10.1.2.3/16')).toThrow(
      '"10.1.2.3/16" has host bits set: the block that holds it is 10.1.0.0/16',
    );
  });

  test.each(['10.0.0.0', '10.0.0.0/', '10.0.0.0/33', '10.0.0.0/08', '2001:db8::/129', '/8', '10.0.0.0/8/8', 'pods/16'])(
    '%j is refused',
    (text) => {
      expect(() => parsePrefix(text)).toThrow(AddressSyntaxError);
    },
  );

  test.each([
    ['100.64.1.0/24', '100.64.1.1', '100.64.1.255'],
    ['192.0.2.0/31', '192.0.2.0', '192.0.2.1'],
    ['192.0.2.7/32', '192.0.2.7', '192.0.2.7'],
    ['fd00:1::/64', 'fd00:1::1', 'fd00:1::ffff:ffff:ffff:ffff'],
  ])('%s has hosts from %s to %s', (text, first, last) => {
    expect(formatAddress(firstAddress(parsePrefix(text)))).toBe(first);
    expect(formatAddress(lastAddress(parsePrefix(text)))).toBe(last);
  });

  test('an IPv4 prefix never contains or overlaps an IPv6 one', () => {
    expect(overlaps(parsePrefix('0.0.0.0/0'), parsePrefix('::/0'))).toBe(false);
    expect(containsAddress(parsePrefix('::/0'), parseAddress('10.0.0.1'))).toBe(false);
  });

  test('two prefixes overlap exactly when one contains the other', () => {
    fc.assert(
      fc.property(smallPrefix, smallPrefix, (a, b) => {
        const apart = lastAddress(a).value < b.address || lastAddress(b).value < a.address;
        expect(overlaps(a, b)).toBe(!apart);
        expect(parsePrefix(formatPrefix(a))).toEqual(a);
      }),
    );
  });

  test('withoutCovered keeps the covering prefixes and only those', () => {
    fc.assert(
      fc.property(fc.array(smallPrefix), (prefixes) => {
        const kept = withoutCovered(prefixes);
        for (const prefix of prefixes) expect(kept.filter((outer) => containsPrefix(outer, prefix))).toHaveLength(1);
      }),
    );
  });
});
