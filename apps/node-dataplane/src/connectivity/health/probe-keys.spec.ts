import { describe, expect, test } from 'vitest';
import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';
import { createProbeKeys } from './probe-keys.ts';

const pair = () => {
  const privateKey = generatePrivateKey();
  return { privateKey, publicKey: publicKeyOf(privateKey) };
};
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const packet = Uint8Array.from([1, 2, 3]);

const codes = (own: { privateKey: string }, peer: { publicKey: string }) =>
  createProbeKeys({ current: own.privateKey })(peer).combinations[0]!;

test('both ends derive the same key for each direction, and no two directions or peers share one', () => {
  const [a, b, c] = [pair(), pair(), pair()];
  const [atA, atB, others] = [codes(a, b), codes(b, a), codes(a, c)];
  expect(hex(atA.own(packet))).toBe(hex(atB.peer(packet)));
  expect(hex(atA.peer(packet))).toBe(hex(atB.own(packet)));
  expect(new Set([atA.own, atA.peer, others.own, others.peer].map((code) => hex(code(packet)))).size).toBe(4);
});

test('codes of keys that are known do not change from version to version', () => {
  // A scalar and the public key of Bob in RFC 7748 section 6.1.
  const text = (digits: string): string => Buffer.from(digits, 'hex').toString('base64');
  const alice = text('77076d0a7318a57d3c16c17251b26645df4c2f92ebc09929f9d4b2f6ba66c2a0');
  const bob = text('de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f');
  expect(hex(createProbeKeys({ current: alice })({ publicKey: bob }).request(packet))).toBe(
    'ee21aab9fbba72b28a5d5bd4ff4e005f',
  );
});

describe('while keys are exchanged', () => {
  const [a0, a1, b0, b1] = [pair(), pair(), pair(), pair()];
  const toB = { publicKey: b0.publicKey, nextPublicKey: b1.publicKey };
  const atA = { current: a0.privateKey, next: a1.privateKey };
  const atB = { current: b0.privateKey, next: b1.privateKey };
  /** Whether the receiver's key in the combination that believes the code is its next one; undefined: none believes it. */
  const believes = (keys: ReturnType<ReturnType<typeof createProbeKeys>>, code: Uint8Array): boolean | undefined =>
    keys.combinations.find(({ peer }) => hex(peer(packet)) === hex(code))?.isOurNext;

  test('a request shows that the next key of the other end is known', () => {
    const b = createProbeKeys(atB)({ publicKey: a0.publicKey });
    expect(believes(b, createProbeKeys(atA)(toB).request(packet))).toBe(true);
    expect(believes(b, createProbeKeys(atA)({ publicKey: b0.publicKey }).request(packet))).toBe(false);
  });

  test('whatever each end has heard, the other believes it, and its answer is believed', () => {
    const own = [{ current: a0.privateKey }, atA, { current: a1.privateKey, previous: a0.privateKey }];
    const heardOfB = [{ publicKey: b0.publicKey }, toB];
    const heardOfA = [
      { publicKey: a0.publicKey },
      { publicKey: a0.publicKey, nextPublicKey: a1.publicKey },
      { publicKey: a1.publicKey },
    ];
    for (const [at, node] of own.entries()) {
      for (const heard of heardOfB) {
        // B has heard of the step that A takes, or of the one before.
        for (const ofA of heardOfA.slice(Math.max(0, at - 1), at + 1)) {
          const [a, b] = [createProbeKeys(node)(heard), createProbeKeys(atB)(ofA)];
          expect(believes(a, b.request(packet))).toBeDefined();
          const combination = b.combinations.find(({ peer }) => hex(peer(packet)) === hex(a.request(packet)))!;
          expect(believes(a, combination.own(packet))).toBeDefined();
        }
      }
    }
  });

  test('the previous key is believed for as long as it is there', () => {
    const late = createProbeKeys({ current: b0.privateKey })({ publicKey: a0.publicKey }).request(packet);
    const heard = { publicKey: b0.publicKey };
    const keys = { current: a1.privateKey, previous: a0.privateKey };
    expect(believes(createProbeKeys(keys)(heard), late)).toBe(false);
    expect(believes(createProbeKeys({ current: a1.privateKey })(heard), late)).toBeUndefined();
  });
});

test.each([
  ['a key that is too short', Buffer.alloc(31).toString('base64')],
  ['a point that gives everybody the same secret', Buffer.alloc(32).toString('base64')],
  ['no key', ''],
])('a peer has no keys with %s', (_name, publicKey) => {
  const derive = createProbeKeys({ current: generatePrivateKey() });
  expect(() => derive({ publicKey })).toThrow(Error);
  expect(() => derive({ publicKey: pair().publicKey, nextPublicKey: publicKey })).toThrow(Error);
});
