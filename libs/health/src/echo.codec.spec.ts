import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  createEchoDecoder,
  createEchoEncoder,
  type Echo,
  EchoError,
  type EchoRoute,
  TOKEN_BYTES,
} from './echo.codec.ts';

const encodeEcho = (echo: Echo, route: EchoRoute): Uint8Array => createEchoEncoder(route)(echo);
const decodeEcho = (packet: Uint8Array, address: string): Echo => createEchoDecoder(address)(packet);

const zeros = new Uint8Array(TOKEN_BYTES);
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const OWN = ['100.64.1.0', 'fd00:1::ff'] as const;
const FAR = { '100.64.1.0': '100.64.2.0', 'fd00:1::ff': 'fd00:2::ff' } as const;
const toItself = (address: string) => ({ source: address, destination: address });
const echo: Echo = { id: 7, sequence: 9n, token: Uint8Array.from({ length: TOKEN_BYTES }, (_, at) => at + 1) };

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
    expect(hex(encodeEcho({ ...echo, token: zeros }, { source, destination: FAR[source] }))).toBe(
      wanted[source].replaceAll(' ', ''),
    );
});

test('its checksums are right', () => {
  for (const source of OWN) {
    const packet = encodeEcho({ ...echo, id: 0xffff_ffff }, { source, destination: FAR[source] });
    const [header, addresses] = source.includes(':') ? [40, 8] : [20, 12];
    if (header === 20) expect(words(packet.subarray(0, 20))).toBe(0xffffn);
    const pseudo = Uint8Array.of(0, 17, 0, 48);
    expect(words(packet.subarray(addresses, header), pseudo, packet.subarray(header))).toBe(0xffffn);
  }
});

test('an echo has nothing of the one before it by the same route', () => {
  const other: Echo = { id: 0xffff_ffff, sequence: 2n ** 64n - 1n, token: new Uint8Array(TOKEN_BYTES).fill(0xff) };
  for (const source of OWN) {
    const encode = createEchoEncoder(toItself(source));
    encode(other);
    expect(hex(encode(echo))).toBe(hex(good(source)));
  }
});

test('a UDP checksum that comes to 0 is sent as 0xffff, since 0 would say that there is none', () => {
  for (const source of OWN) {
    const checksumAt = source.includes(':') ? 46 : 26;
    const checksumOf = (sequence: number): number => {
      const packet = encodeEcho({ id: 7, sequence: BigInt(sequence), token: zeros }, toItself(source));
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
    token: fc.uint8Array({ minLength: TOKEN_BYTES, maxLength: TOKEN_BYTES }),
  });
  fc.assert(
    fc.property(echoes, fc.constantFrom(...OWN), (sent, address) => {
      expect(decodeEcho(encodeEcho(sent, toItself(address)), address)).toEqual(sent);
    }),
  );
});

const faultOf = (packet: Uint8Array, address: string): string => {
  try {
    decodeEcho(packet, address);
    return 'none';
  } catch (error) {
    if (!(error instanceof EchoError)) throw error;
    return error.fault;
  }
};
const good = (address: string): Uint8Array => encodeEcho(echo, toItself(address));

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
  ])('%s', (_name, packet, fault) => expect(faultOf(packet, own)).toBe(fault));

  test.each([5, 6, 7, 12, 13, 14, 15])('byte %i is not zero', (at) => {
    expect(faultOf(altered(payloadAt + at, 1), own)).toBe('malformed');
  });

  test('a cut packet is never read beyond its end', () => {
    for (let length = 0; length < good(own).length; length++)
      expect(faultOf(good(own).subarray(0, length), own)).toBe('length');
  });

  test('bytes at random in a good packet never give another error', () => {
    const changes = fc.array(fc.tuple(fc.nat(good(own).length - 1), fc.nat(255)), { maxLength: 6 });
    fc.assert(
      fc.property(changes, (bytes) => {
        const packet = good(own);
        for (const [at, byte] of bytes) packet[at] = byte;
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
  expect(OWN.map((own, index) => decodeEcho([v4!, v6!][index]!, own))).toEqual([echo, echo]);
});

test('what cannot be sent is refused by name', () => {
  const [own] = OWN;
  for (const id of [-1, 2 ** 32, 1.5, Number.NaN])
    expect(() => encodeEcho({ ...echo, id }, toItself(own))).toThrow(
      new RangeError(`id is ${id}: it must be an integer within 0..4294967295`),
    );
  for (const sequence of [-1n, 2n ** 64n])
    expect(() => encodeEcho({ ...echo, sequence }, toItself(own))).toThrow(
      new RangeError(`sequence is ${sequence}: it must fit into 64 bits without a sign`),
    );
  expect(() => encodeEcho({ ...echo, token: new Uint8Array(15) }, toItself(own))).toThrow('token has 15 bytes');
  expect(() => encodeEcho(echo, { source: own, destination: OWN[1] })).toThrow(
    new RangeError('destination is fd00:1::ff: it must be of the family of source 100.64.1.0'),
  );
});
