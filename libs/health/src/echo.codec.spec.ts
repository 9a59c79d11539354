import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeEcho, type Echo, EchoError, encodeEcho } from './echo.codec.ts';

/** Not a code that protects anything: a sum that depends on every byte and its place. */
const sum = (bytes: Uint8Array): Uint8Array => {
  const code = new Uint8Array(16);
  for (const [at, byte] of bytes.entries()) code[at % 16] = (code[at % 16]! * 31 + byte + 1) & 0xff;
  return code;
};
const zero = (): Uint8Array => new Uint8Array(16);
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const OWN = ['100.64.1.0', 'fd00:1::ff'] as const;
const FAR = { '100.64.1.0': '100.64.2.0', 'fd00:1::ff': 'fd00:2::ff' } as const;
const toItself = (address: string) => ({ source: address, destination: address });
const echo: Echo = { id: 7, sequence: 9n };

/** One's complement sum of 16-bit words, computed with big integers: 0xffff over data with a right checksum. */
const words = (...parts: readonly Uint8Array[]): bigint => {
  const bytes = Buffer.concat(parts);
  let total = 0n;
  for (let at = 0; at < bytes.length; at += 2) total += BigInt(bytes.readUInt16BE(at));
  return total % 0xffffn === 0n ? 0xffffn : total % 0xffffn;
};

test('the bytes of an echo in either family', () => {
  const payload = `554245430100000000000007${'0'.repeat(23)}9${'0'.repeat(32)}`;
  expect(hex(encodeEcho(echo, { source: OWN[0], destination: FAR[OWN[0]] }, zero))).toMatch(
    new RegExp(`^450000440000400008 11 .... 64400100 64400200 270d 270e 0030 .... ${payload}$`.replaceAll(' ', '')),
  );
  expect(hex(encodeEcho(echo, { source: OWN[1], destination: FAR[OWN[1]] }, zero))).toMatch(
    new RegExp(
      `^60000000 0030 11 08 fd000001000000000000000000000 0ff fd0000020000000000000000000000ff 270d 270e 0030 .... ${payload}$`.replaceAll(
        ' ',
        '',
      ),
    ),
  );
});

test('its checksums are right', () => {
  for (const source of OWN) {
    const packet = encodeEcho({ id: 0xffff_ffff, sequence: 3n }, { source, destination: FAR[source] }, sum);
    const [header, addresses] = source.includes(':') ? [40, 8] : [20, 12];
    if (header === 20) expect(words(packet.subarray(0, 20))).toBe(0xffffn);
    const pseudo = Uint8Array.of(0, 17, 0, 48);
    expect(words(packet.subarray(addresses, header), pseudo, packet.subarray(header))).toBe(0xffffn);
  }
});

test('what comes back is read as it was sent', () => {
  const echoes = fc.record({
    id: fc.integer({ min: 0, max: 0xffff_ffff }),
    sequence: fc.bigInt({ min: 0n, max: 0xffff_ffff_ffff_ffffn }),
  });
  fc.assert(
    fc.property(echoes, fc.constantFrom(...OWN), (sent, address) => {
      expect(decodeEcho(encodeEcho(sent, toItself(address), sum), address, sum)).toEqual(sent);
    }),
  );
});

describe('what is no echo of this node', () => {
  const faultOf = (packet: Uint8Array, address: string = OWN[0], code = sum): string => {
    try {
      decodeEcho(packet, address, code);
      return 'none';
    } catch (error) {
      if (!(error instanceof EchoError)) throw error;
      return error.fault;
    }
  };
  const good = (address: string = OWN[0]): Uint8Array => encodeEcho(echo, toItself(address), sum);
  const with4 = (at: number, byte: number): Uint8Array => good().map((old, index) => (index === at ? byte : old));

  test.each<[string, Uint8Array, string]>([
    ['nothing', new Uint8Array(0), 'length'],
    ['one byte', Uint8Array.of(0x45), 'length'],
    ['a byte less', good().subarray(0, -1), 'length'],
    ['a byte more', Uint8Array.from([...good(), 0]), 'length'],
    ['of the other family', good(OWN[1]), 'length'],
    ['with options', with4(0, 0x46), 'length'],
    ['of TCP', with4(9, 6), 'length'],
    ['that says another length', with4(3, 69), 'length'],
    ['from another address', with4(15, 9), 'address'],
    ['to another address', with4(19, 9), 'address'],
    ['from another port', with4(21, 9), 'ports'],
    ['to another port', with4(23, 9), 'ports'],
    ['that begins otherwise', with4(28, 9), 'magic'],
    ['of another version', with4(32, 2), 'version'],
    ['with another session', with4(39, 9), 'mac'],
    ['with another code', with4(67, 9), 'mac'],
  ])('%s', (_name, packet, fault) => expect(faultOf(packet)).toBe(fault));

  test('bytes that must be zero, though the code is right', () => {
    const packet = encodeEcho(echo, toItself(OWN[0]), zero);
    packet[33] = 1;
    expect(faultOf(packet, OWN[0], zero)).toBe('malformed');
  });

  test('a cut packet of either family is never read beyond its end', () => {
    for (const address of OWN)
      for (let length = 0; length < good(address).length; length++)
        expect(faultOf(good(address).subarray(0, length), address)).toBe('length');
  });
});

test('what cannot be sent is refused by name', () => {
  expect(() => encodeEcho({ ...echo, id: -1 }, toItself(OWN[0]), zero)).toThrow('id is -1');
  expect(() => encodeEcho({ ...echo, sequence: -1n }, toItself(OWN[0]), zero)).toThrow('sequence is -1');
  expect(() => encodeEcho(echo, { source: OWN[0], destination: OWN[1] }, zero)).toThrow('destination is fd00:1::ff');
});
