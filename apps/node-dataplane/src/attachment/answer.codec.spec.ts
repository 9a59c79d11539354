import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeAnswer } from './answer.codec.ts';
import type { SettledInterface } from './hook.port.ts';

const OUTPUT = '{"ips":["ü"]}\n';
const encode = (...settle: readonly SettledInterface[]): Uint8Array =>
  encodeAnswer({ exitCode: 0, output: OUTPUT, settle });
const net = (...addresses: readonly string[]): SettledInterface => ({ name: 'net1', addresses });

test('without interfaces an answer is the exit code and the output', () => {
  const bytes = Buffer.from(`\u0007${OUTPUT}`);
  expect(Buffer.from(encodeAnswer({ exitCode: 7, output: OUTPUT }))).toEqual(bytes);
  expect(Buffer.from(encodeAnswer({ exitCode: 7, output: OUTPUT, settle: [] }))).toEqual(bytes);
});

test('interfaces precede it, each with its addresses', () => {
  const lines = [
    'ff02', // 2 interfaces
    '6e65743100000000000000000000000002', // net1, 2 addresses
    '0418c0000207000000000000000000000000',
    '064020010db8000000000000000000000007',
    '6132333435363738393031323334350000', // a name of 15 characters, no address
    '00', // the exit code
  ];
  const bytes = encode(net('192.0.2.7/24', '2001:db8::7/64'), { name: 'a23456789012345', addresses: [] });
  expect(Buffer.from(bytes)).toEqual(Buffer.concat([Buffer.from(lines.join(''), 'hex'), Buffer.from(OUTPUT)]));
});

test('the shortest and longest prefixes, and as many as there may be', () => {
  const addresses = ['0.0.0.0/0', '192.0.2.7/32', '::/0', '2001:db8::7/128'].flatMap((one) =>
    Array<string>(4).fill(one),
  );
  const bytes = encode(...Array<SettledInterface>(16).fill(net(...addresses)));
  expect(bytes).toHaveLength(2 + 16 * (17 + 16 * 18) + 1 + Buffer.byteLength(OUTPUT));
});

test.each(['', '.', '..', 'a/b', 'a b', 'a:1', 'a\0', 'netü', 'a234567890123456'])('the name %j is refused', (name) => {
  expect(() => encode(net(), { name, addresses: [] })).toThrow(RangeError);
  expect(() => encode(net(), { name, addresses: [] })).toThrow(
    `settle[1].name is ${JSON.stringify(name)}: it must be the name of an interface`,
  );
});

test.each([
  '',
  '192.0.2.7',
  '192.0.2.7/',
  '192.0.2.7/33',
  '192.0.2.7/024',
  '192.0.2.7/-1',
  '192.0.2.7/24/24',
  '192.0.2/24',
  '2001:db8::7/129',
  'fe80::1%net1/64',
])('the address %j is refused', (address) => {
  expect(() => encode(net('192.0.2.7/24', address))).toThrow(RangeError);
  expect(() => encode(net('192.0.2.7/24', address))).toThrow(
    `settle[0].addresses[1] is "${address}": it must be an address with its prefix length`,
  );
});

test('more interfaces or addresses than the binary takes are refused', () => {
  expect(() => encode(...Array<SettledInterface>(17).fill(net()))).toThrow(
    new RangeError('the length of settle is 17: it must be at most 16'),
  );
  expect(() => encode(net(...Array<string>(17).fill('192.0.2.7/24')))).toThrow(
    new RangeError('the length of settle[0].addresses is 17: it must be at most 16'),
  );
});

test('an exit code that begins no answer, and one of a pod that is refused its interfaces', () => {
  for (const exitCode of [-1, 0.5, 255, Number.NaN])
    expect(() => encodeAnswer({ exitCode, output: '' })).toThrow('it must be an integer from 0 to 254');
  expect(() => encodeAnswer({ exitCode: 1, output: '', settle: [net()] })).toThrow(
    new RangeError('exitCode is 1: it must be 0 where interfaces are settled'),
  );
});

test('whatever the texts, there are bytes or a RangeError', () => {
  const text = fc.oneof(fc.string(), fc.ipV4(), fc.ipV6(), fc.stringMatching(/^[0-9a-f.:]{1,9}\/[0-9]{1,3}$/));
  fc.assert(
    fc.property(text, fc.array(text, { maxLength: 3 }), (name, addresses) => {
      try {
        expect(encode({ name, addresses })[0]).toBe(0xff);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
      }
    }),
  );
});
