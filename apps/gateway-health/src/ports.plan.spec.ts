import fc from 'fast-check';
import { expect, test } from 'vitest';

import { planPorts, type PortClaims } from './ports.plan.ts';

type Init = Omit<PortClaims, 'age'> & { readonly age?: string };
const plan = (...claims: Init[]) => Object.fromEntries(planPorts(claims.map((claim) => ({ age: '', ...claim }))));

test.each<[string, Init[], Record<string, number>]>([
  [
    'the lowest free port, older ones first',
    [
      { node: 'b', age: '1' },
      { node: 'a', age: '2' },
    ],
    { b: 51821, a: 51822 },
  ],
  ['what the status says stays', [{ node: 'a' }, { node: 'b', fromStatus: 51821 }], { a: 51822, b: 51821 }],
  [
    'the status wins over an annotation',
    [
      { node: 'a', fromAnnotation: 51821 },
      { node: 'b', fromStatus: 51821 },
    ],
    { a: 51822, b: 51821 },
  ],
  [
    'the annotation counts when the status is lost',
    [{ node: 'a' }, { node: 'b', fromAnnotation: 51821 }],
    { a: 51822, b: 51821 },
  ],
  [
    'of two that claim one port the older keeps it, whatever the names',
    [
      { node: 'b', age: '1', fromStatus: 51830 },
      { node: 'a', age: '2', fromStatus: 51830 },
    ],
    { b: 51830, a: 51821 },
  ],
  [
    'the mesh port, a float and nonsense are not granted',
    [
      { node: 'a', fromAnnotation: 51820 },
      { node: 'b', fromAnnotation: 51822.5 },
      { node: 'c', fromAnnotation: Number.NaN },
      { node: 'd', fromStatus: 55220 }, // of links with a new key
    ],
    { a: 51821, b: 51822, c: 51823, d: 51824 },
  ],
])('%s', (_, claims, want) => expect(plan(...claims)).toEqual(want));

const claims = fc.uniqueArray(
  fc.record({
    node: fc.stringMatching(/^[a-z]{1,3}$/),
    age: fc.stringMatching(/^[0-9]$/),
    fromStatus: fc.option(fc.integer({ min: 51815, max: 51840 }), { nil: undefined }),
    fromAnnotation: fc.option(fc.integer({ min: 51815, max: 51840 }), { nil: undefined }),
  }),
  { selector: ({ node }) => node, maxLength: 30 },
);

test('ports are unique, in range, given to all, and a second plan from the first’s status changes nothing', () => {
  fc.assert(
    fc.property(claims, (all) => {
      const given = planPorts(all);
      expect(given.size).toBe(all.length);
      expect(new Set(given.values()).size).toBe(all.length);
      for (const port of given.values()) expect(port).toBeGreaterThanOrEqual(51821);
      const again = planPorts(all.map((claim) => ({ ...claim, fromStatus: given.get(claim.node) })));
      expect(again).toEqual(given);
    }),
  );
});

test('when all ports are given the rest stays without one', () => {
  const all = Array.from({ length: 3400 }, (_, index) => ({ node: `n${index}`, age: '' }));
  const given = planPorts(all);
  expect(given.size).toBe(3399);
  expect(Math.max(...given.values())).toBe(55_219);
});
