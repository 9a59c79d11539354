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
  const payload = `5542454301000000 00000007 00000000 0000000000000009 ${'0'.repeat(32)}`;
  const wanted = {
    '100.64.1.0': `45000044 00004000 0811a729 64400100 64400200 270d270e 00304a5d ${payload}`,
    'fd00:1::ff': `60000000 00301108 fd0000010000000000000000000000ff fd0000020000000000000000000000ff 270d270e 003019db ${payload}`,
  } as const;
  for (const source of OWN)
    expect(hex(encodeEcho(echo, { source, destination: FAR[source] }, zero))).toBe(wanted[source].replaceAll(' ', ''));
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

test('a UDP checksum that comes to 0 is sent as 0xffff, since 0 would say that there is none', () => {
  for (const source of OWN) {
    const checksumAt = source.includes(':') ? 46 : 26;
    const checksumOf = (sequence: number): number => {
      const packet = encodeEcho({ id: 7, sequence: BigInt(sequence) }, toItself(source), zero);
      return Buffer.from(packet).readUInt16BE(checksumAt);
    };
    // Adding the checksum to what it covers makes that come to 0.
    expect(checksumOf(checksumOf(0))).toBe(0xffff);
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

const faultOf = (packet: Uint8Array, address: string, code = sum): string => {
  try {
    decodeEcho(packet, address, code);
    return 'none';
  } catch (error) {
    if (!(error instanceof EchoError)) throw error;
    return error.fault;
  }
};
const good = (address: string): Uint8Array => encodeEcho(echo, toItself(address), sum);

describe.each([
  { own: OWN[0], other: OWN[1], lengthAt: 3, protocolAt: 9, sourceEnd: 15, udpAt: 20 },
  { own: OWN[1], other: OWN[0], lengthAt: 5, protocolAt: 6, sourceEnd: 23, udpAt: 40 },
])('what is no echo of the node at $own', ({ own, other, lengthAt, protocolAt, sourceEnd, udpAt }) => {
  const payloadAt = udpAt + 8;
  const altered = (at: number, byte: number): Uint8Array => good(own).map((old, index) => (index === at ? byte : old));

  test.each<[string, Uint8Array, string]>([
    ['nothing', new Uint8Array(0), 'length'],
    ['one byte', good(own).subarray(0, 1), 'length'],
    ['a byte less', good(own).subarray(0, -1), 'length'],
    ['a byte more', Uint8Array.from([...good(own), 0]), 'length'],
    ['of the other family', good(other), 'length'],
    ['of no IP version', altered(0, 0x55), 'length'],
    ['of TCP', altered(protocolAt, 6), 'length'],
    ['that says another length', altered(lengthAt, 69), 'length'],
    ['from another address', altered(sourceEnd, 9), 'address'],
    ['to another address', altered(udpAt - 1, 9), 'address'],
    ['from another port', altered(udpAt + 1, 9), 'ports'],
    ['to another port', altered(udpAt + 3, 9), 'ports'],
    ['that begins otherwise', altered(payloadAt, 9), 'magic'],
    ['of another version', altered(payloadAt + 4, 2), 'version'],
    ['with another session', altered(payloadAt + 11, 9), 'mac'],
    ['with another sequence', altered(payloadAt + 23, 8), 'mac'],
    ['with another code', altered(payloadAt + 39, 9), 'mac'],
  ])('%s', (_name, packet, fault) => expect(faultOf(packet, own)).toBe(fault));

  test.each([5, 6, 7, 12, 13, 14, 15])('byte %i is not zero, though the code is right', (at) => {
    const packet = encodeEcho(echo, toItself(own), zero);
    packet[payloadAt + at] = 1;
    expect(faultOf(packet, own, zero)).toBe('malformed');
  });

  test('a cut packet is never read beyond its end', () => {
    for (let length = 0; length < good(own).length; length++)
      expect(faultOf(good(own).subarray(0, length), own)).toBe('length');
  });

  test('bytes at random in a good packet never give another error', () => {
    const changes = fc.array(fc.tuple(fc.nat(good(own).length - 1), fc.nat(255)), { maxLength: 6 });
    fc.assert(
      fc.property(changes, fc.boolean(), (bytes, signed) => {
        const packet = good(own);
        for (const [at, byte] of bytes) packet[at] = byte;
        if (signed) packet.set(sum(packet.subarray(payloadAt, payloadAt + 24)), payloadAt + 24);
        faultOf(packet, own);
      }),
    );
  });
});

test('an IPv4 header with options is none of an echo', () => {
  expect(faultOf(Uint8Array.from([0x46, ...good(OWN[0]).subarray(1)]), OWN[0])).toBe('length');
});

test('what gateways change on the way is no fault: hops, traffic class, flow label and checksums', () => {
  const [v4, v6] = OWN.map(good);
  v4!.set([0x2e], 1);
  v4!.set([5, 17, 0, 0], 8);
  v4!.set([0, 0], 26);
  v6!.set([0x62, 0xe1, 2, 3], 0);
  v6!.set([5], 7);
  v6!.set([0, 0], 46);
  expect(OWN.map((own, index) => decodeEcho([v4!, v6!][index]!, own, sum))).toEqual([echo, echo]);
});

test('what cannot be sent is refused by name', () => {
  const [own] = OWN;
  for (const id of [-1, 2 ** 32, 1.5, Number.NaN])
    expect(() => encodeEcho({ ...echo, id }, toItself(own), zero)).toThrow(
      new RangeError(`id is ${id}: it must be an integer within 0..4294967295`),
    );
  for (const sequence of [-1n, 2n ** 64n])
    expect(() => encodeEcho({ ...echo, sequence }, toItself(own), zero)).toThrow(
      new RangeError(`sequence is ${sequence}: it must fit into 64 bits without a sign`),
    );
  expect(() => encodeEcho(echo, { source: own, destination: OWN[1] }, zero)).toThrow(
    new RangeError('destination is fd00:1::ff: it must be of the family of source 100.64.1.0'),
  );
});
