import { GROUP_VERSION, TAILNET_DEVICE_FINALIZER, type TailnetDevice } from '@unbounded/crds';
import { describe, expect, test } from 'vitest';

import { hasExpired, leftBehind, type ListedDevice, planRegistration, strangenessOf } from './registration.plan.ts';

const NOW = Date.parse('2026-06-01T12:00:00Z');
const at = (seconds: number): string => new Date(NOW + seconds * 1000).toISOString();
const [OWN, OTHER] = ['own=', 'other='];

const record = (status?: TailnetDevice['status'], metadata: object = {}): TailnetDevice => ({
  ...{ apiVersion: GROUP_VERSION, kind: 'TailnetDevice' },
  metadata: {
    ...{ namespace: 'shop', name: 'web-0', creationTimestamp: at(0), finalizers: [TAILNET_DEVICE_FINALIZER] },
    ...metadata,
  },
  spec: {
    ...{ node: 'n1', pod: 'web-0', podUID: 'u', hostName: 'k8s-shop-web-0', tags: ['tag:a', 'tag:b'] },
    controlURL: 'https://control.example.com',
  },
  ...(status && { status }),
});
const asks = { keyRequest: { publicKey: OWN } };
const sealed = (seconds: number, publicKey = OWN) => ({
  sealedKey: { publicKey, sealed: 'c2VhbGVk', expiresAt: at(seconds) },
});
const give = { kind: 'giveKey', publicKey: OWN };

test.each<[string, TailnetDevice['status'], readonly object[], number?]>([
  ['nothing is known', undefined, []],
  ['its node asks', asks, [give]],
  ['it has a key', { ...asks, ...sealed(300) }, [], 270_000],
  ['its key is that of a server whose clock is a minute ahead', { ...asks, ...sealed(360) }, [], 330_000],
  ['its key is of a time to which the clock was set back', { ...asks, ...sealed(86_400) }, [give]],
  ['its key is about to expire', { ...asks, ...sealed(30) }, [give]],
  ['its key is for another public key', { ...asks, ...sealed(300, OTHER) }, [give]],
  ['its device is known', { ...asks, deviceID: 'n1', reportedID: 'n1', state: 'Running' }, []],
  ['its device has lost its key', { ...asks, deviceID: 'n1', reportedID: 'n1', state: 'NeedsLogin' }, [give]],
  [
    'its device has a key, and has not logged in',
    { ...sealed(300), deviceID: 'n1', reportedID: 'n1', state: 'NeedsLogin' },
    [],
  ],
  [
    'its device has logged in again',
    { ...sealed(300), deviceID: 'n1', reportedID: 'n1', state: 'Running' },
    [{ kind: 'bind', deviceID: 'n1' }],
  ],
  ['its node names a device', { reportedID: 'n1' }, [{ kind: 'bind', deviceID: 'n1' }]],
  ['its node names a device and asks', { ...asks, reportedID: 'n1' }, [{ kind: 'bind', deviceID: 'n1' }, give]],
  ['its node names another device', { deviceID: 'n1', reportedID: 'n2' }, [{ kind: 'bind', deviceID: 'n2' }]],
])('%s', (_, status, steps, againMs) => {
  expect(planRegistration(record(status), NOW)).toEqual({ steps, ...(againMs !== undefined && { againMs }) });
});

describe('a record that is being deleted', () => {
  const ends = { deletionTimestamp: at(0) };
  test.each<[string, TailnetDevice['status'], object]>([
    ['without a key', { ...asks, reportedID: 'n9' }, { isSearched: false }],
    ['with a key that nobody used', { keyID: 'k1', keysGiven: 1 }, { keyID: 'k1', isSearched: true }],
    ['with its device', { deviceID: 'n1', keysGiven: 1 }, { deviceID: 'n1', isSearched: false }],
    ['with its device, after two keys', { deviceID: 'n1', keysGiven: 2 }, { deviceID: 'n1', isSearched: true }],
  ])('%s loses what it has, whatever its node reports', (_, status, rest) => {
    expect(planRegistration(record(status, ends), NOW)).toEqual({ steps: [{ kind: 'remove', ...rest }] });
  });
  test('is nobody’s concern without the finalizer', () => {
    expect(planRegistration(record({ deviceID: 'n1' }, { ...ends, finalizers: ['a.b/c'] }), NOW)).toEqual({
      steps: [],
    });
  });
});

const device = (rest: Partial<ListedDevice> = {}): ListedDevice => ({
  ...{ id: 'n1', hostName: 'k8s-shop-web-0', tags: ['tag:b', 'tag:a'], created: at(1), ...rest },
});

test.each<[string, Partial<ListedDevice>, string | undefined]>([
  ['its own', {}, undefined],
  ['made by a clock that is a minute late', { created: at(-60) }, undefined],
  ['of another name', { hostName: 'db' }, 'its host name is "db", not k8s-shop-web-0'],
  ['with a tag less', { tags: ['tag:a'] }, 'its tags are tag:a, not tag:a, tag:b'],
  ['with a tag more', { tags: ['tag:a', 'tag:b', 'tag:c'] }, 'its tags are tag:a, tag:b, tag:c'],
  ['of a person', { tags: [] }, 'its tags are none'],
  ['made before the record', { created: at(-61) }, 'before its record'],
  ['of no known time', { created: '' }, 'when it was made is not known'],
])('a device %s', (_, rest, strangeness) => {
  const expected = strangeness === undefined ? undefined : (expect.stringContaining(strangeness) as string);
  expect(strangenessOf(record(), device(rest))).toEqual(expected);
});

test('left behind is what only the record can have made, and nobody else has', () => {
  const devices = [device(), device({ id: 'n2' }), device({ id: 'n3', hostName: 'db' })];
  expect(leftBehind(record(), devices, new Set(['n2'])).map(({ id }) => id)).toEqual(['n1']);
});

test('a device expires at its time, or never', () => {
  expect([at(-1), at(0), at(1)].map((expires) => hasExpired(device({ expires }), NOW))).toEqual([true, true, false]);
  expect(hasExpired(device(), NOW)).toBe(false);
});
