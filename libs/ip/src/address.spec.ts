import { isIPv6 } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Address,
  addressFromBytes,
  AddressSyntaxError,
  addressToBytes,
  formatAddress,
  parseAddress,
  tryParseAddress,
} from './address.ts';

const anyAddress: fc.Arbitrary<Address> = fc.oneof(
  fc.bigInt({ min: 0n, max: (1n << 32n) - 1n }).map((value) => ({ family: 4 as const, value })),
  fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }).map((value) => ({ family: 6 as const, value })),
);

describe('addresses', () => {
  test.each([
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:0db8::0001', '2001:db8::1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['::', '::'],
    ['::ffff:192.0.2.1', '::ffff:c000:201'],
    ['1::', '1::'],
    ['10.0.0.1', '10.0.0.1'],
  ])('%s is written %s', (text, canonical) => {
    expect(formatAddress(parseAddress(text))).toBe(canonical);
  });

  test.each([
    '',
    '1.2.3',
    '1.2.3.4.5',
    '256.1.1.1',
    '01.2.3.4',
    '1.2.3.4 ',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    'g::',
    '1:2:3:4:5:6:7:8::',
    '::1.2.3',
    'fe80::1%eth0',
    '1:2:3:4:5:6:7::8',
    '12345::',
  ])('%j is refused unless node:net takes it too', (text) => {
    if (isIPv6(text) && !text.includes('%')) return expect(() => parseAddress(text)).not.toThrow();
    expect(() => parseAddress(text)).toThrow(AddressSyntaxError);
    expect(tryParseAddress(text)).toBeUndefined();
  });

  test('text, bytes and value say the same address', () => {
    fc.assert(
      fc.property(anyAddress, (address) => {
        expect(parseAddress(formatAddress(address))).toEqual(address);
        expect(addressFromBytes(addressToBytes(address))).toEqual(address);
      }),
    );
  });

  test('arbitrary text either parses or is refused by name', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9a-f:.]{0,50}$/)), (text) => {
        try {
          parseAddress(text);
        } catch (error) {
          expect(error).toBeInstanceOf(AddressSyntaxError);
        }
      }),
    );
  });
});
