import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fingerprint, preferred } from './rendezvous.ts';

test('the choice is the same in every version', () => {
  const nodes = ['n1', 'n2', 'n3', 'n4'];
  expect(['192.0.2.10', '192.0.2.11', '192.0.2.12', '2001:db8::1'].map((address) => preferred(address, nodes)))
    .toMatchInlineSnapshot(`
    [
      "n4",
      "n4",
      "n3",
      "n2",
    ]
  `);
  expect(fingerprint('{}')).toMatchInlineSnapshot(`"3ff9b36c"`);
});

test('without names nothing is preferred', () => {
  expect(preferred('192.0.2.10', [])).toBeUndefined();
});

const names = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 12 });

test('a name that comes takes subjects for itself only, one that goes loses its own only', () => {
  fc.assert(
    fc.property(fc.array(fc.string()), names, fc.string(), (subjects, present, extra) => {
      for (const subject of subjects) {
        const [before, after] = [preferred(subject, present), preferred(subject, [...present, extra])];
        expect([before, extra]).toContain(after);
      }
    }),
  );
});

test('names share subjects about evenly', () => {
  const nodes = Array.from({ length: 10 }, (_, index) => `node-${index}`);
  const shares = new Map(nodes.map((name) => [name, 0]));
  for (let index = 0; index < 5000; index++) {
    const name = preferred(`192.0.${index >> 8}.${index & 255}`, nodes)!;
    shares.set(name, shares.get(name)! + 1);
  }
  for (const share of shares.values()) expect(share).toBeGreaterThan(400);
  for (const share of shares.values()) expect(share).toBeLessThan(600);
});
