import fc from 'fast-check';
import { expect, test } from 'vitest';

import { decodeProxyHeader } from './proxy-protocol.codec.ts';

const SIGNATURE = '0d0a0d0a000d0a515549540a';
const bytesOf = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex');

test.each([
  ['IPv4', '21 11 000c cb007105 7f000001 1000 0d96', '203.0.113.5', 28],
  ['IPv4 with TLVs', '21 11 0010 cb007105 7f000001 1000 0d96 04000100', '203.0.113.5', 32],
  ['IPv6', `21 21 0024 20010db8${'00'.repeat(11)}07 ${'00'.repeat(15)}01 1000 0d96`, '2001:db8:0:0:0:0:0:7', 52],
  ['the balancer itself', '20 00 0000', undefined, 16],
])('%s', (_name, rest, source, bytes) => {
  expect(decodeProxyHeader(bytesOf(SIGNATURE + rest))).toEqual({ kind: 'header', bytes, source });
});

test.each([
  ['another signature', '0d0a0d0a000d0a515549540b'],
  ['version 1', '50524f5859205443503420'],
  ['version 3', `${SIGNATURE}3111000c`],
  ['an unknown command', `${SIGNATURE}2211000c${'00'.repeat(12)}`],
  ['UDP', `${SIGNATURE}2112000c${'00'.repeat(12)}`],
  ['addresses that are too short', `${SIGNATURE}2111000b${'00'.repeat(11)}`],
  ['a length of 64 KiB', `${SIGNATURE}2111ffff`],
])('%s is refused', (_name, hex) => {
  expect(decodeProxyHeader(bytesOf(hex))).toMatchObject({ kind: 'malformed' });
});

test('any beginning of a header needs more, and no bytes at all make it throw', () => {
  const whole = bytesOf(`${SIGNATURE} 21 11 000c cb007105 7f000001 1000 0d96`);
  for (let end = 0; end < whole.length; end++)
    expect(decodeProxyHeader(whole.subarray(0, end))).toEqual({ kind: 'partial' });
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (rest) => {
      const result = decodeProxyHeader(Buffer.concat([bytesOf(SIGNATURE), rest]));
      return result.kind !== 'header' || result.bytes <= 12 + rest.length;
    }),
  );
});
