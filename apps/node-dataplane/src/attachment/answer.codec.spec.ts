import { expect, test } from 'vitest';
import { encodeAnswer } from './answer.codec.ts';

const done = { exitCode: 0, output: '{}' };

test('an answer without interfaces is its exit code and its output', () => {
  expect(encodeAnswer({ exitCode: 7, output: 'ü' })).toEqual(Buffer.from('\x07ü'));
  expect(encodeAnswer({ ...done, settle: [] })).toEqual(Buffer.from('\0{}'));
});

test('interfaces stand before it, byte by byte', () => {
  const bytes = encodeAnswer({ ...done, settle: [{ name: 'net1', addresses: ['192.0.2.7/24', '2001:db8::7/64'] }] });
  const expected = [
    'ff01',
    '6e657431000000000000000000000000',
    '02',
    '0418c0000207000000000000000000000000',
    '064020010db8000000000000000000000007',
    '007b7d',
  ];
  expect(bytes.toString('hex')).toBe(expected.join(''));
});

test.each<[what: string, settle: Parameters<typeof encodeAnswer>[0]['settle'], says: string]>([
  ['a name of 16 bytes', [{ name: 'x'.repeat(16), addresses: [] }], 'must have 1 to 15 bytes'],
  ['no name', [{ name: '', addresses: [] }], 'interface "": must have'],
  ['17 addresses', [{ name: 'a', addresses: Array.from({ length: 17 }, () => '192.0.2.1/24') }], 'a has 17 addresses'],
  ['17 interfaces', Array.from({ length: 17 }, () => ({ name: 'a', addresses: [] })), '17 interfaces to settle'],
  ['an address without a length', [{ name: 'a', addresses: ['192.0.2.1'] }], 'address "192.0.2.1": must have a prefix'],
  ['a length of 33', [{ name: 'a', addresses: ['192.0.2.1/33'] }], 'must have a prefix length of at most 32'],
])('%s is refused with field and value', (_, settle, says) =>
  expect(() => encodeAnswer({ ...done, ...(settle && { settle }) })).toThrow(says),
);
