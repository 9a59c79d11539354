import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeProbe,
  encodeProbe,
  MAX_PROBE_BYTES,
  NOTICE_BYTES,
  type Probe,
  PROBE_BYTES,
  ProbeError,
} from './probe.codec.ts';
import { siteHash } from './site-hash.ts';

/** Not a code that protects anything: a sum that depends on every byte and its place. */
const sum = (bytes: Uint8Array): Uint8Array => {
  const code = new Uint8Array(16);
  for (const [at, byte] of bytes.entries()) code[at % 16] = (code[at % 16]! * 31 + byte + 1) & 0xff;
  return code;
};
const zero = (): Uint8Array => new Uint8Array(16);
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const u64 = fc.bigInt({ min: 0n, max: 0xffff_ffff_ffff_ffffn });
const identity = { nonce: u64, sequence: u64, timeNs: u64 };
const request = fc.record({
  type: fc.constant('request' as const),
  ...identity,
  size: fc.integer({ min: PROBE_BYTES, max: MAX_PROBE_BYTES }),
});
const hashes = fc.array(fc.integer({ min: 0, max: 0xffff_ffff }), { maxLength: 256 });
const reply = fc.record(
  {
    type: fc.constant('reply' as const),
    ...identity,
    sizeReceived: fc.integer({ min: 0, max: 0xffff }),
    sites: fc.record({ hashes, truncated: fc.boolean() }),
  },
  { requiredKeys: ['type', 'nonce', 'sequence', 'timeNs', 'sizeReceived'] },
);
const telling = fc.record({
  type: fc.constant('request' as const),
  ...identity,
  size: fc.integer({ min: PROBE_BYTES + NOTICE_BYTES, max: MAX_PROBE_BYTES }),
  missesEchoes: fc.constantFrom('here' as const, 'all' as const),
});
const probes: fc.Arbitrary<Probe> = fc.oneof(request, telling, reply);

test('what is encoded is decoded to the same', () => {
  fc.assert(
    fc.property(probes, (probe) => {
      expect(decodeProbe(encodeProbe(probe, sum), sum)).toEqual(probe);
    }),
  );
});

test('the bytes of a request and of a reply', () => {
  const asked = { nonce: 0x0102030405060708n, sequence: 9n, timeNs: 10n };
  expect(hex(encodeProbe({ type: 'request', ...asked, size: PROBE_BYTES + 2 }, zero))).toBe(
    '554248500101000001020304050607080000000000000009000000000000000a000000000000' + '0'.repeat(32),
  );
  const sites = { hashes: [siteHash('edge'), 1], truncated: true };
  expect(hex(encodeProbe({ type: 'reply', ...asked, sizeReceived: 54, sites }, zero))).toBe(
    '554248500102000301020304050607080000000000000009000000000000000a00360002' +
      siteHash('edge').toString(16).padStart(8, '0') +
      '00000001' +
      '0'.repeat(32),
  );
});

test('a notice stands where versions that do not know it see padding', () => {
  const asked = { type: 'request', nonce: 1n, sequence: 2n, timeNs: 3n, size: PROBE_BYTES + NOTICE_BYTES } as const;
  const [silent, telling] = [asked, { ...asked, missesEchoes: 'here' } as const].map((probe) =>
    encodeProbe(probe, zero),
  );
  expect(hex(silent!.subarray(36, 40))).toBe('00000000');
  expect(hex(telling!.subarray(36, 40))).toBe('00000001');
  expect(hex(telling!.subarray(0, 36))).toBe(hex(silent!.subarray(0, 36)));
  expect(() => encodeProbe({ ...asked, size: PROBE_BYTES, missesEchoes: 'all' }, zero)).toThrow('size is 52');
});

test('a name of a site has the FNV-1a number that others compute', () => {
  expect([siteHash(''), siteHash('a'), siteHash('foobar')]).toEqual([0x811c9dc5, 0xe40c292c, 0xbf9cf968]);
});

const faultOf = (bytes: Uint8Array): string => {
  try {
    decodeProbe(bytes, sum);
    return 'none';
  } catch (error) {
    if (!(error instanceof ProbeError)) throw error;
    return error.fault;
  }
};

/** A good packet with some bytes changed, and a right code over them. */
const changed = (probe: Probe, at: number, ...values: number[]): Uint8Array => {
  const bytes = encodeProbe(probe, sum);
  bytes.set(values, at);
  bytes.set(sum(bytes.subarray(0, -16)), bytes.length - 16);
  return bytes;
};

describe('a packet is refused', () => {
  const asked = { nonce: 1n, sequence: 2n, timeNs: 3n };
  const ask = { type: 'request', ...asked, size: PROBE_BYTES } as const;
  const answer = { type: 'reply', ...asked, sizeReceived: 52, sites: { hashes: [7], truncated: false } } as const;
  const tampered = encodeProbe(ask, sum);
  tampered[20] = 99;
  test.each([
    ['that is too short', new Uint8Array(PROBE_BYTES - 1), 'length'],
    ['that is too long', new Uint8Array(MAX_PROBE_BYTES + 1), 'length'],
    ['that begins otherwise', changed(ask, 0, 0), 'magic'],
    ['of another version', changed(ask, 4, 2), 'version'],
    ['that was changed on its way', tampered, 'mac'],
    ['of no known type', changed(ask, 5, 3), 'malformed'],
    ['of a request that lists sites', changed(ask, 35, 1), 'malformed'],
    ['of a request with flags', changed(ask, 7, 1), 'malformed'],
    ['of a reply that lists more than it holds', changed(answer, 35, 2), 'malformed'],
    ['of a reply that lists sites without saying so', changed(answer, 7, 0), 'malformed'],
    ['of a reply with an unknown flag', changed(answer, 7, 5), 'malformed'],
  ])('%s', (_name, bytes, fault) => {
    expect(faultOf(bytes)).toBe(fault);
  });
});

test('bytes at random never give another error', () => {
  const head = Uint8Array.from([0x55, 0x42, 0x48, 0x50, 1]);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 1200 }), fc.boolean(), fc.boolean(), (random, likely, signed) => {
      const bytes = likely ? Uint8Array.from([...head, ...random]) : random;
      if (signed && bytes.length >= 16) bytes.set(sum(bytes.subarray(0, -16)), bytes.length - 16);
      faultOf(bytes);
    }),
    { numRuns: 2000 },
  );
});

test('what does not fit is named', () => {
  const asked = { type: 'request', nonce: 1n, sequence: 2n, timeNs: 3n, size: PROBE_BYTES } as const;
  expect(() => encodeProbe({ ...asked, size: 20 }, sum)).toThrow('size is 20: it must be an integer within 52..9000');
  expect(() => encodeProbe({ ...asked, nonce: -1n }, sum)).toThrow('nonce is -1');
  const sites = { hashes: Array.from({ length: 257 }, () => 1), truncated: false };
  expect(() => encodeProbe({ ...asked, type: 'reply', sizeReceived: 0, sites }, sum)).toThrow('number of sites is 257');
});
