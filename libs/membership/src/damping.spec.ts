import fc from 'fast-check';
import { expect, test } from 'vitest';

import { MOST_AT_ONCE, SLOWEST_MS } from './damping-allowance.ts';
import { createDamper } from './damping.ts';

interface Stated {
  readonly name: string;
  readonly uid: string;
  readonly value: number;
  readonly hasKey: boolean;
}
const stating = (name: string, value: number, extra: Partial<Stated> = {}): Stated => ({
  name,
  uid: name,
  value,
  hasKey: true,
  ...extra,
});

const damping = () => {
  let nowMs = 0;
  const damper = createDamper<Stated>({
    elapsed: () => nowMs,
    identityOf: (stated) => stated,
    hold: (accepted) => accepted,
    isSame: (a, b) => a.value === b.value && a.hasKey === b.hasKey,
    hasKey: ({ hasKey }) => hasKey,
  });
  return {
    pass: (ms: number) => void (nowMs += ms),
    now: () => nowMs,
    accept: (...stated: Stated[]) => damper.accept(stated),
    value: (...stated: Stated[]) => damper.accept(stated).standing[0]?.value,
  };
};

/** What one node states, each after so many milliseconds: often the same two values, to and fro. */
const steps = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.constantFrom(0, 1, 100), fc.integer({ min: 0, max: 3 * SLOWEST_MS })),
    value: fc.oneof(fc.constantFrom(1, 2), fc.integer({ min: 3, max: 9 })),
  }),
  { maxLength: 300, size: 'max' },
);

test('five changes pass at once, further ones after 8, 16 and 32 s, and then one a minute', () => {
  const { accept, pass, now } = damping();
  const times: number[] = [];
  let listed = accept(stating('n', 0)).standing[0]!.value;
  for (let value = 1; now() <= 300_000; value++) {
    const next = accept(stating('n', value)).standing[0]!.value;
    if (next === listed) pass(100);
    else times.push(now());
    listed = next;
  }
  expect(times).toEqual([0, 0, 0, 0, 0, 8000, 24_000, 56_000, 116_000, 176_000, 236_000, 296_000]);
});

test('whatever one node states, it changes at most so often in any time', () => {
  fc.assert(
    fc.property(steps, (given) => {
      const { value, pass, now } = damping();
      const times: number[] = [];
      let listed = value(stating('n', 0));
      for (const step of given) {
        pass(step.afterMs);
        const next = value(stating('n', step.value));
        if (next !== listed) times.push(now());
        listed = next;
      }
      times.forEach((begin, i) => {
        const most = times.slice(i).map((end) => MOST_AT_ONCE + (end - begin) / SLOWEST_MS);
        expect(most.findIndex((bound, more) => more + 1 > bound)).toBe(-1);
      });
    }),
  );
});

test('the last value stands in the end, within a minute, by the times that the damper itself asks for', () => {
  fc.assert(
    fc.property(steps, (given) => {
      const { accept, pass, now } = damping();
      accept(stating('n', 0));
      let last = stating('n', 0);
      for (const { afterMs, value } of given) {
        pass(afterMs);
        accept((last = stating('n', value)));
      }
      const sinceMs = now();
      let result = accept(last);
      while (result.standing[0]!.value !== last.value) {
        expect(result.damped).toContain('n');
        pass(result.nextMs!);
        result = accept(last);
      }
      expect(now() - sinceMs).toBeLessThanOrEqual(SLOWEST_MS);
      while (result.nextMs !== undefined) {
        pass(result.nextMs);
        result = accept(last);
      }
      expect([...result.damped]).toEqual([]);
    }),
  );
});

test('what stands of a node is the same whatever another one does', () => {
  fc.assert(
    fc.property(steps, steps, (mine, theirs) => {
      const [alone, beside] = [damping(), damping()];
      mine.forEach(({ afterMs, value }, i) => {
        alone.pass(afterMs);
        beside.pass(afterMs);
        const want = alone.value(stating('n', value));
        expect(beside.value(stating('n', value), stating('other', theirs[i]?.value ?? i))).toBe(want);
      });
    }),
  );
});

test('quiet time gives changes back: one a minute', () => {
  const { value, pass } = damping();
  let stated = 0;
  const change = (): boolean => value(stating('n', ++stated)) === stated;
  change(); // the first statement
  for (let count = 1; count <= 5; count++) expect(change()).toBe(true);
  expect(change()).toBe(false);
  pass(8000 + 2 * SLOWEST_MS);
  expect([change(), change(), change()]).toEqual([true, true, false]);
});

test('a node that changes once a minute is never damped', () => {
  const { accept, pass } = damping();
  for (let value = 0; value < 100; value++, pass(SLOWEST_MS)) {
    expect(accept(stating('n', value))).toMatchObject({ standing: [{ value }], damped: new Set() });
  }
});

test('a damped node is told to be so once, until it has been quiet for a minute', () => {
  const { accept, pass } = damping();
  const begun: (readonly string[])[] = [];
  for (let value = 0; value < 6000; value++, pass(100)) begun.push(accept(stating('n', value % 2)).begun);
  expect(begun.flat()).toEqual(['n']);
  pass(SLOWEST_MS);
  accept(stating('n', 0));
  pass(2 * SLOWEST_MS);
  expect([...accept(stating('n', 0)).damped]).toEqual([]);
});

test('removal, a first statement and a first key wait for nothing', () => {
  const { accept, value } = damping();
  const keyless = (stated: number) => stating('n', stated, { hasKey: false });
  for (let stated = 0; stated <= 10; stated++) value(keyless(stated));
  expect(value(keyless(11))).toBe(5);
  expect(value(stating('n', 12))).toBe(12);
  expect(value(keyless(13))).toBe(12);
  expect(accept().standing).toEqual([]);
  expect(value(stating('n', 14))).toBe(14);
});

test('a key that goes and comes is a first key once', () => {
  const { accept } = damping();
  const seen = Array.from(
    { length: 40 },
    (_, i) => accept(stating('n', 0, { hasKey: i % 2 === 0 })).standing[0]!.hasKey,
  );
  expect(seen.slice(1).filter((hasKey, i) => hasKey !== seen[i]).length).toBe(5);
});

test('another node of the same name begins anew, and what is known of a node goes with it', () => {
  const { value } = damping();
  for (let stated = 0; stated <= 10; stated++) value(stating('n', stated));
  expect(value(stating('n', 11))).toBe(5);
  expect(value(stating('n', 12, { uid: 'later' }))).toBe(12);
});
