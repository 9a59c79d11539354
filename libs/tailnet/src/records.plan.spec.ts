import { createHash } from 'node:crypto';

import {
  TAILNET_DEVICE_FINALIZER,
  type TailnetDevice,
  tailnetAnnotations,
  type TailnetSettings,
} from '@unbounded/crds';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { isHostName } from './host-name.ts';
import { planRecords, type RecordsInput, type TailnetPod } from './records.plan.ts';

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const settings: TailnetSettings = {
  controlURL: 'https://control.example.com',
  credentials: { oauthClientSecret: 'tailnet' },
  rules: [
    { namespaceSelector: { matchLabels: { all: 'yes' } }, join: 'UnlessDeclined' },
    { namespaceSelector: {}, join: 'OnRequest', allowedTags: ['tag:web'] },
  ],
};
const asks = (more: Readonly<Record<string, string>> = {}) => ({ [tailnetAnnotations.join]: 'true', ...more });
const named = (hostName: string) => asks({ [tailnetAnnotations.hostName]: hostName });
const pod = (name: string, rest: Partial<TailnetPod> = {}): TailnetPod => ({
  ...{ namespace: 'shop', name, uid: `uid-${name}`, annotations: asks(), node: 'n1' },
  ...{ isOnHostNetwork: false, hasEnded: false, isBeingDeleted: false, ...rest },
});
const planOf = (pods: readonly TailnetPod[], rest: Partial<RecordsInput> = {}) =>
  planRecords({
    ...{ settings, hasMesh: true, pods, records: [], digestOf },
    namespaces: new Map([
      ['shop', {}],
      ['all', { all: 'yes' }],
    ]),
    ...rest,
  });
const recordOf = (one: TailnetPod): TailnetDevice => planOf([one]).creates[0]!;
const deleted = (record: TailnetDevice): TailnetDevice => ({
  ...record,
  metadata: { ...record.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
});

test('a pod that asks gets a record of its own name, which goes with it but for its finalizer', () => {
  expect(planOf([pod('web-0', { annotations: asks({ [tailnetAnnotations.tags]: 'tag:web' }) })])).toMatchObject({
    creates: [
      {
        kind: 'TailnetDevice',
        metadata: {
          ...{ namespace: 'shop', name: 'web-0', finalizers: [TAILNET_DEVICE_FINALIZER] },
          ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'web-0', uid: 'uid-web-0' }],
        },
        spec: {
          ...{ node: 'n1', pod: 'web-0', podUID: 'uid-web-0', hostName: 'k8s-shop-web-0', tags: ['tag:web'] },
          controlURL: 'https://control.example.com',
        },
      },
    ],
    ...{ deletes: [], refusals: [] },
  });
});

test.each<[string, Partial<TailnetPod>]>([
  ['is not scheduled', { node: undefined as unknown as string }],
  ['has ended', { hasEnded: true }],
  ['is being deleted', { isBeingDeleted: true }],
  ['asks for nothing', { annotations: {} }],
  ['declines', { namespace: 'all', annotations: { [tailnetAnnotations.join]: 'false' } }],
  ['is on the host’s network and asks for nothing', { namespace: 'all', annotations: {}, isOnHostNetwork: true }],
  ['is of a namespace that is not known', { namespace: 'other' }],
])('a pod that %s gets none, and no word', (_, rest) => {
  expect(planOf([pod('web-0', rest)])).toEqual({ creates: [], deletes: [], refusals: [] });
});

test.each<[string, TailnetPod, Partial<RecordsInput>, string]>([
  ['a tag that is not allowed', pod('a', { annotations: asks({ [tailnetAnnotations.tags]: 'tag:db' }) }), {}, 'tag:db'],
  ['the host’s network', pod('a', { isOnHostNetwork: true }), {}, 'a pod on the host’s network is no device'],
  ['no tailnet', pod('a'), { settings: undefined }, 'there is no Mesh.spec.tailnet'],
  ['a wrong name', pod('a', { annotations: named('A_B') }), {}, '"A_B": must be at most 63'],
])('%s is refused with a message; other pods are not affected', (_, wrong, rest, message) => {
  const { creates, refusals } = planOf(
    [wrong, pod('b', { annotations: rest.settings === undefined && 'settings' in rest ? {} : asks() })],
    rest,
  );
  expect(refusals).toEqual([{ pod: wrong, message: expect.stringContaining(message) as string }]);
  expect(creates.map(({ metadata }) => metadata.name)).toEqual('settings' in rest ? [] : ['b']);
});

describe('the end of a record', () => {
  const own = pod('web-0');
  const record = recordOf(own);
  test.each<[string, readonly TailnetPod[], string | undefined]>([
    ['its pod runs', [own], undefined],
    ['its pod declines later', [{ ...own, annotations: { [tailnetAnnotations.join]: 'false' } }], undefined],
    ['its pod is being deleted', [{ ...own, isBeingDeleted: true }], undefined],
    ['its pod is gone', [], 'PodGone'],
    ['its pod was made anew', [{ ...own, uid: 'other' }], 'PodReplaced'],
    ['its pod has ended', [{ ...own, hasEnded: true }], 'PodEnded'],
    ['its pod is elsewhere', [{ ...own, node: 'n2' }], 'NodeChanged'],
  ])('%s', (_, pods, reason) => {
    const plan = planOf(pods, { records: [record] });
    expect(plan.deletes).toEqual(reason === undefined ? [] : [{ record, reason }]);
    expect(plan.creates).toEqual([]);
  });
  test('the tailnet is given up', () => {
    const { deletes } = planOf([own], { records: [record], settings: undefined });
    expect(deletes).toEqual([{ record, reason: 'TailnetGone' }]);
  });
  test('not while there is no Mesh, but with its pod', () => {
    const without = { records: [record], settings: undefined, hasMesh: false };
    expect(planOf([own, pod('new')], without)).toMatchObject({ creates: [], deletes: [] });
    expect(planOf([], without).deletes).toEqual([{ record, reason: 'PodGone' }]);
  });
  test('is asked for once', () => {
    expect(planOf([], { records: [deleted(record)] }).deletes).toEqual([]);
  });
  test('comes before the record of another pod of the name', () => {
    const anew = { ...own, uid: 'other' };
    expect(planOf([anew], { records: [deleted(record)] }).creates).toEqual([]);
    expect(planOf([anew]).creates).toHaveLength(1);
  });
});

test('of pods that ask for one name the first keeps it, and what a record has stays', () => {
  const [a, b] = [pod('a', { annotations: named('db') }), pod('b', { annotations: named('db') })];
  const names = (creates: readonly TailnetDevice[]) => creates.map(({ spec }) => spec.hostName);
  expect(names(planOf([b, a]).creates)).toEqual(['db', expect.stringMatching(/^db-[0-9a-f]{8}$/)]);
  expect(names(planOf([b, a], { records: [recordOf(b)] }).creates)).toEqual([
    expect.stringMatching(/^db-[0-9a-f]{8}$/),
  ]);
  expect(names(planOf([a], { records: [deleted(recordOf(b))] }).creates)).not.toEqual(['db']);
});

test('names are unique and valid, and plans settle, whatever pods ask for', () => {
  const label = fc.constantFrom('a', 'a-b', 'b', 'x'.repeat(63), `${'y'.repeat(53)}-${'z'.repeat(9)}`);
  const pods = fc.uniqueArray(
    fc.record({
      namespace: fc.constantFrom('shop', 'all'),
      name: fc.stringMatching(/^[a-z]{1,3}$/),
      asked: fc.option(label),
    }),
    { selector: ({ namespace, name }) => `${namespace}/${name}`, maxLength: 12 },
  );
  fc.assert(
    fc.property(pods, fc.nat(12), (asked, known) => {
      const all = asked.map(({ namespace, name, asked: hostName }) =>
        pod(name, { namespace, annotations: hostName === null ? asks() : named(hostName) }),
      );
      const before = planOf(all.slice(0, known)).creates;
      const { creates } = planOf(all, { records: before });
      const names = [...before, ...creates].map(({ spec }) => spec.hostName);
      expect(new Set(names).size).toBe(all.length);
      expect(names.filter((name) => !isHostName(name))).toEqual([]);
      expect(planOf(all, { records: [...before, ...creates] })).toEqual({ creates: [], deletes: [], refusals: [] });
    }),
  );
});
