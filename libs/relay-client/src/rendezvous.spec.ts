import fc from 'fast-check';
import { expect, test } from 'vitest';

import { pairOf, ranked } from './rendezvous.ts';

const key = fc.uint8Array({ minLength: 32, maxLength: 32 });
const names = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 2, maxLength: 8 });

test('a relay that goes moves only its own peers', () => {
  fc.assert(
    fc.property(fc.array(key, { maxLength: 30 }), names, fc.nat(), (peers, relays, index) => {
      const gone = relays[index % relays.length]!;
      const left = relays.filter((relay) => relay !== gone);
      for (const peer of peers) {
        const [before, next] = ranked(peer, relays);
        expect(ranked(peer, left)[0]).toBe(before === gone ? next : before);
      }
    }),
  );
});

test('the order does not depend on the order of the names, nor on which end asks', () => {
  fc.assert(
    fc.property(key, key, names, (a, b, relays) => {
      expect(ranked(pairOf(a, b), relays)).toEqual(ranked(pairOf(b, a), relays.toReversed()));
    }),
  );
});

test('peers are spread evenly over relays with similar names, and over the others when one goes', () => {
  const relays = ['10.0.0.1:3478', '10.0.0.2:3478', '10.0.0.3:3478', '10.0.0.4:3478'];
  const peers = Array.from({ length: 4000 }, (_, index) => {
    const peer = Buffer.alloc(32);
    peer.writeUInt32BE(index, 28);
    return peer;
  });
  const count = (names: readonly string[]): number[] =>
    names.map((name) => peers.filter((peer) => ranked(peer, names)[0] === name).length);
  for (const some of count(relays)) expect(Math.abs(some - 1000)).toBeLessThan(150);
  for (const some of count(relays.slice(1))) expect(Math.abs(some - 1333)).toBeLessThan(180);
});
