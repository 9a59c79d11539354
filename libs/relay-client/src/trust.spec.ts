import { makeSelfSigned } from '@unbounded/testing/self-signed';
import { expect, test } from 'vitest';

import { checkTrust, settingsOf, trustDigest } from './trust.ts';

const CERTIFICATE = makeSelfSigned('ca');
const KEY = Buffer.alloc(32, 5).toString('base64');

test('certificates with anything between them, and a key, are taken', () => {
  expect(() =>
    checkTrust({ caBundle: `# ours\n${CERTIFICATE}\n# theirs\n${CERTIFICATE}`, staticKey: KEY }),
  ).not.toThrow();
  expect(() => checkTrust({})).not.toThrow();
});

test.each([
  ['no certificate', { caBundle: 'none' }, 'caBundle has 0 certificates'],
  ['too many', { caBundle: CERTIFICATE.repeat(65) }, 'caBundle has 65 certificates: must have 1 to 64'],
  [
    'one that cannot be read',
    { caBundle: `${CERTIFICATE}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----` },
    'certificate 2 cannot be read',
  ],
  ['a key that is too short', { staticKey: 'AAAA' }, 'must be a key of 32 bytes'],
])('%s is refused', (_, trust, message) => expect(() => checkTrust(trust)).toThrow(message));

test('a client pins the static key, and none when there is none', () => {
  expect(settingsOf({ staticKey: KEY }).pinnedKey).toEqual(Buffer.alloc(32, 5));
  expect(settingsOf({ caBundle: CERTIFICATE })).not.toHaveProperty('pinnedKey');
});

test('each trust has a name of its own, and no trust has none', () => {
  const digests = [{ caBundle: CERTIFICATE }, { staticKey: KEY }, { caBundle: CERTIFICATE, staticKey: KEY }].map(
    trustDigest,
  );
  expect(new Set(digests).size).toBe(3);
  expect(trustDigest({})).toBeUndefined();
});
