import type { TailnetDevice } from '@unbounded/crds';
import { parsePrefix } from '@unbounded/ip';
import { deviceUnit } from '@unbounded/keeper-protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type DeviceSituation, type KeptPod, planDeviceStep } from './device.plan.ts';
import type { LocalStatus } from './local-api.ts';

const POD: KeptPod = {
  ...{ podUID: 'u1', namespace: 'shop', podName: 'web-0', start: 'Immediate' },
  ...{ container: { id: 'c1', netns: '/run/netns/a' }, addresses: [] },
};
const ADDRESSES = ['100.64.0.7', 'fd7a:115c:a1e0::7'];
const recordOf = (status: TailnetDevice['status'] = {}): TailnetDevice => ({
  apiVersion: 'net.unbounded-cloud.io/v1alpha1',
  kind: 'TailnetDevice',
  metadata: { name: 'web-0', namespace: 'shop' },
  spec: {
    ...{ node: 'n1', pod: 'web-0', podUID: 'u1', hostName: 'k8s-shop-web-0', tags: ['tag:k8s-pod'] },
    controlURL: 'https://tailnet.example.com',
  },
  status,
});
const localOf = (rest: Partial<LocalStatus> = {}): LocalStatus => ({
  ...{ state: 'Running', addresses: ADDRESSES, id: 'n77', dnsName: 'web-0.example.ts.net', health: [], ...rest },
});
const running = { state: 'Running', reportedID: 'n77', name: 'web-0.example.ts.net', addresses: ADDRESSES } as const;
const OWN = 'A'.repeat(43) + '=';
const plan = (rest: Partial<DeviceSituation> = {}) =>
  planDeviceStep({
    ...{ pod: POD, record: recordOf(), local: localOf(), cluster: [parsePrefix('10.0.0.0/8')] },
    ...{ publicKey: OWN, isLoggingIn: false, ...rest },
  });
const sealedKey = { publicKey: OWN, sealed: 'c2VhbGVk', expiresAt: '2026-01-01T00:05:00Z' };

describe('the keeper is asked', () => {
  test('for the network alone while there is no record', () => {
    const { unit, patch } = plan({ record: undefined, local: undefined });
    expect(unit).toMatchObject({ podUID: 'u1', netns: '/run/netns/a', network: { addresses: [] } });
    expect([unit?.device, patch]).toEqual([undefined, undefined]);
  });

  test('for the device as it was while records are not known', () => {
    const device = { hostName: 'k8s-shop-web-0', controlURL: 'https://tailnet.example.com' };
    const { unit, patch } = plan({ record: undefined, pod: { ...POD, device, addresses: ADDRESSES } });
    expect([unit?.device, unit?.network.addresses, patch]).toEqual([device, ADDRESSES, undefined]);
  });

  test('for the device of the record, with what the device has', () => {
    const { unit } = plan();
    expect(unit?.device).toEqual({ hostName: 'k8s-shop-web-0', controlURL: 'https://tailnet.example.com' });
    expect(unit?.network.addresses).toEqual(ADDRESSES);
    expect(unit?.network.rules.map(({ to }) => to)).toEqual(['100.64.0.0/10', 'fd7a:115c:a1e0::/48']);
    expect(() => deviceUnit.format(unit!)).not.toThrow();
  });

  test('for nothing while the pod has no container', () => {
    const { container: _, ...pod } = POD;
    expect(plan({ pod }).unit).toBeUndefined();
  });

  test('to leave addresses of the cluster in the tailnet’s range to the pod’s own interface', () => {
    const { unit } = plan({ cluster: [parsePrefix('100.65.0.0/16')] });
    expect(unit?.network.routes).toContainEqual({ to: '100.65.0.0/16', kind: 'throw', metric: 0, table: 5252 });
  });
});

describe('addresses', () => {
  const POD_UP = { ...POD, addresses: ADDRESSES };
  test.each<[what: string, local: LocalStatus | undefined, kept: readonly string[]]>([
    ['stay while its process does not answer', undefined, ADDRESSES],
    ['stay while it starts', localOf({ state: 'Starting', addresses: [] }), ADDRESSES],
    ['go when it has to log in', localOf({ state: 'NeedsLogin', addresses: [] }), []],
    ['go when it waits to be admitted', localOf({ state: 'NeedsMachineAuth', addresses: [] }), []],
    ['change with it', localOf({ addresses: ['100.64.0.9'] }), ['100.64.0.9']],
  ])('%s', (_, local, kept) => {
    const { unit, addresses } = plan({ pod: POD_UP, local });
    expect([unit?.network.addresses, addresses]).toEqual([kept, kept]);
  });

  test.each([
    ['of a pod', '10.96.0.10'],
    ['of a pod in the tailnet’s range', '100.65.0.3'],
    ['of nobody', '127.0.0.1'],
    ['that is none', 'web'],
  ])('%s are not taken from the control server, and it is told', (_, address) => {
    const cluster = ['10.0.0.0/8', '100.65.0.0/16'].map(parsePrefix);
    const { unit, patch } = plan({ cluster, local: localOf({ addresses: [address, ADDRESSES[1]!] }) });
    expect(unit?.network.addresses).toEqual([ADDRESSES[1]]);
    expect(patch).toMatchObject({ state: 'Starting', message: expect.stringContaining(address) });
  });

  test('of whatever kind are a unit that the keeper takes', () =>
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.ipV4(),
            fc.ipV6(),
            fc.string(),
            fc.constantFrom('100.64.0.1', '100.64.0.2', 'fd7a:115c:a1e0:0::1'),
          ),
        ),
        (addresses) => {
          const { unit } = plan({ local: localOf({ addresses }) });
          expect(() => deviceUnit.format(unit!)).not.toThrow();
        },
      ),
    ));
});

describe('the record', () => {
  test('says what the device says', () => {
    expect(plan({ local: localOf({ paths: ['direct', 'DERP fra', 'direct'] }) }).patch).toEqual({
      ...{ ...running, path: 'direct' },
    });
  });

  test('is not written where it says so already', () => {
    expect(plan({ record: recordOf(running) }).patch).toBeUndefined();
  });

  test('keeps who it is while the process does not answer', () => {
    const { patch } = plan({ record: recordOf(running), local: undefined, pod: { ...POD, addresses: ADDRESSES } });
    expect(patch).toEqual({ state: 'Starting', message: 'its process does not answer' });
  });

  test('loses what is no longer so', () => {
    const { patch } = plan({ record: recordOf({ ...running, message: 'a', state: 'Starting' }) });
    expect(patch).toEqual({ state: 'Running', message: null });
  });

  test('says at most 512 characters of what is wrong', () => {
    const local = localOf({ state: 'Starting', addresses: [], health: ['x'.repeat(2000)] });
    expect(plan({ local }).patch?.message).toHaveLength(512);
  });
});

describe('a key', () => {
  const needsLogin = localOf({ state: 'NeedsLogin', addresses: [] });
  const { id: _, ...unknown } = needsLogin;
  test('is asked for by a device that has none', () => {
    expect(plan({ local: unknown }).patch).toMatchObject({ state: 'NeedsLogin', keyRequest: { publicKey: OWN } });
  });

  test('is used when it was sealed for this request', () => {
    const record = recordOf({ keyRequest: { publicKey: OWN }, sealedKey });
    expect(plan({ record, local: unknown }).sealedKey).toBe('c2VhbGVk');
  });

  test.each<[what: string, rest: Partial<DeviceSituation>]>([
    [
      'sealed for another request',
      { record: recordOf({ sealedKey: { ...sealedKey, publicKey: 'B'.repeat(43) + '=' } }) },
    ],
    ['while it logs in by the one before', { record: recordOf({ sealedKey }), isLoggingIn: true }],
    ['by a device that is logged in', { record: recordOf({ sealedKey }), local: localOf() }],
    ['while its process does not answer', { record: recordOf({ sealedKey }), local: undefined }],
  ])('is not used %s', (__, rest) => {
    expect(plan({ local: needsLogin, ...rest }).sealedKey).toBeUndefined();
  });

  test('is asked for by a device that is no more, although it takes itself for one', () => {
    const record = recordOf({ ...running, goneID: 'n77' });
    expect(plan({ record }).patch).toMatchObject({ keyRequest: { publicKey: OWN } });
  });

  test('is not asked for by the one that came after it', () => {
    const record = recordOf({ ...running, reportedID: 'n78', goneID: 'n77', keyRequest: { publicKey: OWN } });
    expect(plan({ record, local: localOf({ id: 'n78' }) }).patch).toEqual({ keyRequest: null });
  });

  test('is not asked for again while the device logs in', () => {
    const record = recordOf({ keyRequest: { publicKey: OWN } });
    expect(plan({ record, local: unknown, isLoggingIn: true }).patch).toMatchObject({ keyRequest: null });
  });
});
