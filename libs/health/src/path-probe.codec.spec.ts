import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodePathProbe,
  encodePathProbe,
  pairNameOf,
  PATH_PROBE_BYTES,
  type PathProbe,
  splitPathProbes,
} from './path-probe.codec.ts';
import { ProbeError } from './probe.codec.ts';

/** Not a code that protects anything: a sum that depends on every byte and its place. */
const sum = (bytes: Uint8Array): Uint8Array => {
  const code = new Uint8Array(16);
  for (const [at, byte] of bytes.entries()) code[at % 16] = (code[at % 16]! * 31 + byte + 1) & 0xff;
  return code;
};
const zero = (): Uint8Array => new Uint8Array(16);
const NAME = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);

const u64 = fc.bigInt({ min: 0n, max: 0xffff_ffff_ffff_ffffn });
const newest = fc.record({ nonce: u64, sequence: u64 });
const probes: fc.Arbitrary<PathProbe> = fc.record(
  {
    nonce: u64,
    sequence: u64,
    stance: fc.constantFrom('relay' as const, 'ready' as const, 'direct' as const),
    answers: newest,
  },
  { requiredKeys: ['nonce', 'sequence', 'stance'] },
);

test('what is encoded is decoded to the same, and never looks like a message of WireGuard', () => {
  fc.assert(
    fc.property(probes, (probe) => {
      const bytes = encodePathProbe(probe, NAME, sum);
      expect(bytes[0]).toBeGreaterThanOrEqual(0x80);
      expect(pairNameOf(bytes)).toEqual(NAME);
      expect(decodePathProbe(bytes, sum)).toEqual(probe);
    }),
  );
});

test('the bytes of a request and of a reply', () => {
  const own = { nonce: 0x0102030405060708n, sequence: 9n };
  const hex = (probe: PathProbe): string => Buffer.from(encodePathProbe(probe, NAME, zero)).toString('hex');
  const sender = '010203040506070801020304050607080000000000000009';
  expect(hex({ ...own, stance: 'relay' })).toBe(`f555425001010100${sender}${'0'.repeat(64)}`);
  expect(hex({ ...own, stance: 'direct', answers: { nonce: 10n, sequence: 11n } })).toBe(
    `f555425001020300${sender}000000000000000a000000000000000b${'0'.repeat(32)}`,
  );
});

const faultOf = (bytes: Uint8Array, authenticate = sum): string => {
  try {
    decodePathProbe(bytes, authenticate);
    return 'none';
  } catch (error) {
    if (error instanceof ProbeError) return error.fault;
    throw error;
  }
};

describe('bytes that are no probe', () => {
  const good = encodePathProbe({ nonce: 1n, sequence: 2n, stance: 'ready' }, NAME, zero);
  const changed = (at: number, value: number): Uint8Array => good.map((byte, index) => (index === at ? value : byte));
  test.each([
    ['too short', good.subarray(1), 'length'],
    ['too long', Uint8Array.of(...good, 0), 'length'],
    ['another protocol', changed(0, 4), 'magic'],
    ['another version', changed(4, 2), 'version'],
    ['type 3', changed(5, 3), 'malformed'],
    ['an unknown stance', changed(6, 4), 'malformed'],
    ['no stance', changed(6, 0), 'malformed'],
    ['a byte that must be 0', changed(7, 1), 'malformed'],
    ['a request that answers something', changed(47, 1), 'malformed'],
  ])('%s', (_name, bytes, fault) => {
    expect(faultOf(bytes, zero)).toBe(fault);
  });

  test('a change of any bit is noticed', () => {
    const authentic = encodePathProbe({ nonce: 1n, sequence: 2n, stance: 'ready' }, NAME, sum);
    for (let bit = 0; bit < 8 * PATH_PROBE_BYTES; bit++) {
      const flipped = authentic.map((byte, index) => (index === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte));
      expect(faultOf(flipped)).not.toBe('none');
    }
  });

  test('random and truncated input throws nothing but ProbeError', () => {
    const anyBytes = fc.uint8Array({ maxLength: 200 });
    const likely = anyBytes.map((tail) => Uint8Array.of(...good.subarray(0, 6), ...tail).subarray(0, 64));
    fc.assert(fc.property(fc.oneof(anyBytes, likely), (bytes) => faultOf(bytes, () => bytes.slice(-16)) !== ''));
  });
});

test('packets that came joined are taken apart; what is left over is none', () => {
  const joined = Uint8Array.from({ length: 2 * PATH_PROBE_BYTES + 9 }, (_, index) => index);
  expect(splitPathProbes(joined).map((bytes) => [bytes.length, bytes[0]])).toEqual([
    [64, 0],
    [64, 64],
  ]);
  expect(splitPathProbes(new Uint8Array(63))).toEqual([]);
});
