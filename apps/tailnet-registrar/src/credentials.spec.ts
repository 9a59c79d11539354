import { ApiError, type Secret } from '@unbounded/kube';
import { expect, test } from 'vitest';

import { createCredentials } from './credentials.ts';

const signal = new AbortController().signal;
const encode = (text: string): string => Buffer.from(text).toString('base64');
const secretOf = (data: Record<string, string>): Secret => ({
  metadata: { name: 's' },
  data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, encode(text)])),
});
const world = (first: Secret | ApiError) => {
  let [answer, nowMs, asked] = [first, 0, 0];
  const get = async (): Promise<Secret> => {
    asked++;
    if (answer instanceof ApiError) throw answer;
    return answer;
  };
  return {
    credentials: createCredentials({ secrets: { get }, namespace: 'system', now: () => nowMs }),
    wait: (ms: number) => void (nowMs += ms),
    becomes: (next: Secret | ApiError) => void (answer = next),
    asked: () => asked,
  };
};
const CLIENT = { 'client-id': 'id\n', 'client-secret': '  planted\n' };

test('credentials are what the Secret has, without white space around it', async () => {
  const { credentials } = world(secretOf({ ...CLIENT, 'auth-key': 'tskey\n' }));
  expect(await credentials.oauthClient('s', signal)).toEqual({ clientID: 'id', clientSecret: 'planted' });
  expect(await credentials.authKey('s', signal)).toBe('tskey');
});

test('a Secret is read once for many, and what was changed is used within a minute', async () => {
  const { credentials, wait, becomes, asked } = world(secretOf(CLIENT));
  await Promise.all(Array.from({ length: 20 }, () => credentials.oauthClient('s', signal)));
  expect(asked()).toBe(1);
  becomes(secretOf({ ...CLIENT, 'client-id': 'new' }));
  wait(30_000);
  expect((await credentials.oauthClient('s', signal)).clientID).toBe('new');
});

test.each<[string, Secret | ApiError, string]>([
  ['is missing', new ApiError('GET', 404, { reason: 'NotFound' }), 'there is no Secret system/s: make it'],
  ['may not be read', new ApiError('GET', 403, { reason: 'Forbidden' }), 'name it in tailnet-registrar.secretNames'],
  [
    'lacks a key',
    secretOf({ 'client-id': 'id' }),
    'Secret system/s has no client-secret: write it into data.client-secret',
  ],
  ['has an empty key', secretOf({ ...CLIENT, 'client-id': ' \n' }), 'has no client-id'],
])('a Secret that %s is told, and read again at once', async (_, answer, message) => {
  const { credentials, becomes } = world(answer);
  const error = await credentials.oauthClient('s', signal).then(
    () => undefined,
    (caught: unknown) => caught as Error,
  );
  expect(error).toMatchObject({ name: 'CredentialsMissingError', message: expect.stringContaining(message) as string });
  expect(error?.stack).not.toContain('planted');
  becomes(secretOf(CLIENT));
  expect((await credentials.oauthClient('s', signal)).clientID).toBe('id');
});
