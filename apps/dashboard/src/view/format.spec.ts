import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ageMs, ago, bytes, count, duration, ofAll, percent, plural, roundTrip } from './format.ts';

const [S, MIN, H, D] = [1000, 60_000, 3_600_000, 86_400_000];

describe('what people read', () => {
  test.each([
    [-5, '0 s'],
    [0, '0 s'],
    [999, '0 s'],
    [3 * S, '3 s'],
    [59 * S, '59 s'],
    [MIN, '1 min'],
    [MIN + 5 * S, '1 min 5 s'],
    [12 * MIN + 5 * S, '12 min'],
    [H, '1 h'],
    [2 * H + 5 * MIN + 9 * S, '2 h 5 min'],
    [23 * H + 59 * MIN, '23 h 59 min'],
    [D + 3 * H + MIN, '1 d 3 h'],
    [100 * D, '100 d'],
    [D + 5 * MIN, '1 d'],
    [5 * H + 38 * S, '5 h'],
  ])('duration of %i ms is %s', (ms, text) => {
    expect(duration(ms)).toBe(text);
  });

  test.each([
    [undefined, 'unknown'],
    [0, '0 ms'],
    [0.042, '0.042 ms'],
    [0.42, '0.42 ms'],
    [1.25, '1.3 ms'],
    [12.34, '12.3 ms'],
    [123.4, '123 ms'],
    [1234, '1.2 s'],
  ])('round trip of %s is %s', (ms, text) => {
    expect(roundTrip(ms)).toBe(text);
  });

  test.each([
    [undefined, 'unknown'],
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1 KiB'],
    [1536, '1.5 KiB'],
    [1024 ** 2 - 1, '1 MiB'],
    [1024 ** 3 * 12.34, '12.3 GiB'],
    [Number.MAX_SAFE_INTEGER, '8 PiB'],
  ])('%s bytes are %s', (value, text) => {
    expect(bytes(value)).toBe(text);
  });

  test.each([
    [undefined, 'unknown'],
    [0, '0 %'],
    [0.0004, '< 0.1 %'],
    [0.0123, '1.2 %'],
    [0.5, '50 %'],
    [0.9999, '> 99.9 %'],
    [1, '100 %'],
  ])('a share of %s is %s', (ratio, text) => {
    expect(percent(ratio)).toBe(text);
  });

  test('counts, and lists that are cut', () => {
    expect([count(5000), ofAll(12, 5000), ofAll(3, 3), plural(1, 'site'), plural(2, 'site')]).toEqual([
      ...['5,000', '12 of 5,000', '3', '1 site', '2 sites'],
    ]);
  });

  test('ages; a clock that is ahead makes none that is negative', () => {
    const now = Date.parse('2026-01-01T00:01:00Z');
    expect(ago(ageMs('2026-01-01T00:00:30Z', now)!)).toBe('30 s ago');
    expect(ago(ageMs('2026-01-01T00:09:00Z', now)!)).toBe('now');
    expect(ageMs('yesterday', now)).toBeUndefined();
  });

  test('no value is without a unit, or more than twelve characters long', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (value) => {
        expect(bytes(value)).toMatch(/^\d[\d.]{0,3} ([KMGTPE]i)?B$/);
        expect(duration(value / 1000)).toMatch(/^\d+ (d|h|min|s)( \d+ (h|min|s))?$/);
      }),
    );
  });
});
