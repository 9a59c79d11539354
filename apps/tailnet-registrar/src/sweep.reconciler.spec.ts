import { GROUP_VERSION, type Mesh, MESH_NAME, type TailnetDevice } from '@unbounded/crds';
import type { ResourceClient } from '@unbounded/kube';
import type { ListedDevice } from '@unbounded/tailnet';
import { silentLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';

import { TailnetApiError } from './api/api-error.ts';
import type { TailnetApi } from './api/tailnet-api.ts';
import { createStatusWriter } from './device-status.ts';
import { createPauses } from './pauses.ts';
import { sweepReconciler } from './sweep.reconciler.ts';
import { createTailnetHealth } from './tailnet-health.ts';
import { createTailnetState } from './tailnet-state.ts';

/** What the list of devices at the control server makes of records. */

const CREATED = '2026-06-01T12:00:00Z';
const URL = 'https://control.example.com';
const device = (id: string, rest: Partial<ListedDevice> = {}): ListedDevice => ({
  ...{ id, hostName: id, tags: [], created: CREATED, ...rest },
});
const recordOf = (id: string, metadata: object = {}): TailnetDevice => ({
  ...{ apiVersion: GROUP_VERSION, kind: 'TailnetDevice' },
  metadata: { namespace: 'shop', name: `pod-${id}`, uid: `u-${id}`, resourceVersion: '1', ...metadata },
  spec: { node: 'n1', pod: `pod-${id}`, podUID: id, hostName: id, tags: [], controlURL: URL },
  status: { deviceID: id },
});
const deleted = { deletionTimestamp: CREATED };
const mesh: Mesh = {
  ...{ apiVersion: GROUP_VERSION, kind: 'Mesh', metadata: { name: MESH_NAME } },
  spec: {
    tailnet: {
      ...{ controlURL: URL, apiURL: URL, credentials: { oauthClientSecret: 's' } },
      rules: [{ namespaceSelector: {}, join: 'OnRequest' }],
    },
  },
};

const world = (...ids: readonly string[]) => {
  const records = new Map(ids.map((id) => [`pod-${id}`, recordOf(id)]));
  const asked: string[] = [];
  let [listed, found]: [readonly ListedDevice[], readonly ListedDevice[]] = [[], []];
  const health = createTailnetHealth();
  let duringLookup = (): void => {};
  const answer = <T>(value: T): Promise<T> => {
    health.report(); // as of each request that goes well
    return Promise.resolve(value);
  };
  const api: Partial<TailnetApi> = {
    devices: () => answer(listed),
    device: async (id) => {
      asked.push(id);
      duringLookup();
      return answer([...listed, ...found].find((one) => one.id === id));
    },
  };
  const client: Partial<ResourceClient<TailnetDevice>> = {
    mergePatch: async (name, patch) => {
      const before = records.get(name)!;
      const { status } = patch as { status: object };
      const kept = Object.entries({ ...before.status, ...status }).filter(([, value]) => value !== null);
      records.set(name, { ...before, status: Object.fromEntries(kept) });
      return records.get(name)!;
    },
  };
  const recorder = { record: () => {}, flush: async () => {}, dropped: 0 };
  const state = createTailnetState({
    ...{ mesh: () => mesh, records: () => [...records.values()], health },
    open: () => ({ kind: 'api', api: api as TailnetApi }),
  });
  const reconcile = sweepReconciler({
    records: () => [...records.values()],
    access: () => state.access(),
    status: createStatusWriter(client as ResourceClient<TailnetDevice>, recorder),
    ...{ apiURL: () => URL, health, pauses: createPauses(() => 0), intervalMs: 300_000, logger: silentLogger },
    now: () => Date.parse(CREATED),
  });
  return {
    ...{ asked, health, state },
    sweep: () => reconcile('sweep', new AbortController().signal),
    lists: (...devices: readonly ListedDevice[]) => void (listed = devices),
    finds: (...devices: readonly ListedDevice[]) => void (found = devices),
    ends: (id: string) =>
      void records.set(`pod-${id}`, { ...recordOf(id), ...{ metadata: recordOf(id, deleted).metadata } }),
    removes: (id: string) => void records.delete(`pod-${id}`),
    meanwhile: (change: () => void) => void (duringLookup = change),
    statusOf: (id: string) => records.get(`pod-${id}`)?.status,
    forget: (id: string) => void records.set(`pod-${id}`, { ...recordOf(id), status: { goneID: id } }),
    gone: () => [...records.values()].flatMap(({ status }) => status?.goneID ?? []),
  };
};

test('a device that the list lacks, and one that has expired, is gone; the others stay', async () => {
  const { lists, sweep, gone, statusOf, asked } = world('a', 'b', 'c');
  lists(device('a'), device('b', { expires: CREATED }));
  expect(await sweep()).toEqual({ kind: 'again', afterMs: 300_000 });
  expect([gone(), asked]).toEqual([
    ['b', 'c'],
    ['b', 'c'],
  ]);
  expect(statusOf('c')?.conditions?.[0]).toMatchObject({ reason: 'DeviceGone' });
  expect(statusOf('a')).toEqual({ deviceID: 'a' });
});

test('a device whose look-up fails is not gone', async () => {
  const { lists, sweep, gone, meanwhile } = world('a', 'b');
  lists(device('a'));
  meanwhile(() => {
    throw new TailnetApiError('no answer', { failure: 'ControlServerUnreachable', status: 503 });
  });
  await sweep();
  expect(gone()).toEqual([]);
});

test('the only device may be gone', async () => {
  const { sweep, gone, health } = world('a');
  await sweep();
  expect([gone(), health.doubt]).toEqual([['a'], undefined]);
});

test('of a list that knows no device nothing is believed, and the Mesh says why', async () => {
  const { lists, sweep, gone, health } = world('a', 'b', 'c');
  const turns: (string | undefined)[] = [];
  health.on(() => turns.push(health.state?.failure?.reason));
  lists(device('of somebody else'));
  expect(await sweep()).toEqual({ kind: 'again', afterMs: 30_000 });
  await sweep();
  expect(gone()).toEqual([]);
  expect(health.state?.failure).toMatchObject({
    reason: 'NoDeviceKnown',
    message: expect.stringContaining(`the list of ${URL} has none of the devices that are bound (3)`) as string,
  });
  expect(turns).toEqual([undefined, 'NoDeviceKnown']); // requests that go well do not make it turn
});

test('in doubt no key is given and no removal believes what it hears', async () => {
  const { sweep, state } = world('a', 'b');
  expect(state.accessTo(recordOf('a')).kind).toBe('api');
  await sweep();
  expect(() => state.accessTo(recordOf('a'))).toThrow('the credentials may be those of another tailnet');
});

test('it is over when the list knows one of them again', async () => {
  const { lists, sweep, gone, health, state } = world('a', 'b');
  await sweep();
  lists(device('b'));
  expect(await sweep()).toEqual({ kind: 'again', afterMs: 300_000 });
  expect([gone(), health.state]).toEqual([['a'], {}]);
  expect(state.accessTo(recordOf('a')).kind).toBe('api');
});

test('it is not over because records are being deleted: their removal waits', async () => {
  const { sweep, ends, removes, health } = world('a', 'b');
  await sweep();
  ends('a');
  ends('b');
  await sweep();
  expect(health.doubt).toContain('devices that are bound (2)');
  removes('a');
  await sweep();
  expect(health.doubt).toContain('devices that are bound (1)');
  removes('b');
  await sweep();
  expect(health.doubt).toBeUndefined();
});

test('it is over when somebody has written that the devices are gone', async () => {
  const { sweep, forget, health, state } = world('a', 'b');
  await sweep();
  for (const id of ['a', 'b']) forget(id);
  await sweep();
  expect([health.doubt, state.accessTo(recordOf('a')).kind]).toEqual([undefined, 'api']);
});

test('a list that is behind the registrations is no reason for doubt', async () => {
  const { finds, sweep, gone, health } = world('a', 'b');
  finds(device('a'), device('b'));
  await sweep();
  expect([gone(), health.doubt]).toEqual([[], undefined]);
});

test('devices that we remove ourselves are no reason for doubt, before and while they are looked up', async () => {
  const before = world('a', 'b');
  for (const id of ['a', 'b']) before.ends(id);
  await before.sweep();
  expect([before.health.doubt, before.gone()]).toEqual([undefined, []]);
  const meanwhile = world('a', 'b');
  meanwhile.meanwhile(() => meanwhile.ends('b'));
  await meanwhile.sweep();
  expect(meanwhile.health.doubt).toBeUndefined();
});

test('a request that fails is the failure that is told, and doubt is there again after it', async () => {
  const { sweep, health } = world('a', 'b');
  await sweep();
  health.report(new TailnetApiError('no answer', { failure: 'ControlServerUnreachable' }));
  expect(health.state?.failure?.reason).toBe('ControlServerUnreachable');
  health.report();
  expect(health.state?.failure?.reason).toBe('NoDeviceKnown');
});
