import fc from 'fast-check';
import { expect, test } from 'vitest';
import { macBytes, macText } from './mac.ts';

test('the text of six octets is read as these octets, in either case', () =>
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 6, maxLength: 6 }), (octets) => {
      expect([...macBytes(macText(octets))]).toEqual([...octets]);
      expect([...macBytes(macText(octets).toUpperCase())]).toEqual([...octets]);
    }),
  ));

test.each([
  '',
  '02:00:00:00:00',
  '02:00:00:00:00:01:02',
  '02-00-00-00-00-01',
  '2:0:0:0:0:1',
  '02:00:00:00:00:0g',
  '02:00:00:00:00:01\n',
])('%j is not a MAC address', (text) =>
  expect(() => macBytes(text)).toThrow('is not a MAC address: write it like 02:00:00:00:00:01'),
);
