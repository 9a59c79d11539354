import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isToken, subprotocolsOf } from './subprotocols.ts';

test('the token is base64url without padding behind the prefix of Kubernetes', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[\w.~+/-]{1,200}={0,2}$/), (token) => {
      const [protocol, encoded] = subprotocolsOf(token);
      expect(protocol).toBe('v1.status.unbounded');
      const text = encoded!.replace('base64url.bearer.authorization.k8s.io.', '');
      expect(text).toMatch(/^[\w-]+$/);
      expect(Buffer.from(text, 'base64url').toString()).toBe(token);
      expect(isToken(token)).toBe(true);
    }),
  );
});

test.each(['', 'two words', 'Bearer x', 'a\nb', 'ü', 'x'.repeat(12_289)])('%j is no token', (text) => {
  expect(isToken(text)).toBe(false);
});
