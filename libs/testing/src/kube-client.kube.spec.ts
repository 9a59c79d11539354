import { kinds, type Site, siteKind } from '@unbounded/crds';
import { silentLogger } from '@unbounded/telemetry';
import { afterAll, beforeAll, expect, test } from 'vitest';

import {
  applyStatus,
  clientOf,
  coreClients,
  createEventRecorder,
  ensureCrds,
  isConflict,
  isNotFound,
  type Node,
  withCondition,
} from '@unbounded/kube';

import { type ApiServer, startApiServer } from './api-server.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await startApiServer();
  await ensureCrds(coreClients(api.cluster).crds, kinds);
});
afterAll(() => api?.stop());

const nodes = () => coreClients(api.cluster).nodes;
const node = (name: string): Node => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } });

const site = (name: string, spec: Partial<Site['spec']> = {}): Site => ({
  apiVersion: 'net.unbounded-cloud.io/v1alpha1',
  kind: 'Site',
  metadata: { name },
  spec: { nodeCidrs: ['10.1.0.0/16'], podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/16'] }], ...spec },
});

test('kinds can be installed twice and their defaults are filled in', async () => {
  await ensureCrds(coreClients(api.cluster).crds, kinds);
  const created = await clientOf(api.cluster, siteKind).create(site('defaults'));
  expect(created.spec).toMatchObject({
    manageCniPlugin: true,
    podCidrAssignments: [{ assignmentEnabled: true, priority: 100 }],
  });
});

test('a write on top of a change that was not seen is a conflict', async () => {
  const { metadata } = await nodes().create(node('stale'));
  await nodes().mergePatch('stale', { metadata: { labels: { a: '1' } } });
  const patch = { metadata: { resourceVersion: metadata.resourceVersion, labels: { a: '2' } } };
  await expect(nodes().mergePatch('stale', patch)).rejects.toSatisfy(isConflict);
  expect((await nodes().get('stale')).metadata.labels).toMatchObject({ a: '1' });
});

test('an object that is not there is told from other refusals', async () => {
  await expect(nodes().get('nowhere')).rejects.toSatisfy(isNotFound);
});

test('server-side apply owns only what it sends', async () => {
  const sites = clientOf(api.cluster, siteKind);
  await sites.create(site('applied'));
  const condition = { type: 'Ready', status: 'True', reason: 'Ok', message: 'fine' } as const;
  const status = { nodeCount: 3, conditions: withCondition(undefined, condition, new Date()) };
  const { apiVersion, kind } = site('applied');
  await sites.apply({ apiVersion, kind, metadata: { name: 'applied' }, status } as never, {
    fieldManager: 'a',
    subresource: 'status',
  });
  const seen = await sites.get('applied');
  expect(seen).toMatchObject({
    spec: { nodeCidrs: ['10.1.0.0/16'] },
    status: { nodeCount: 3, conditions: [condition] },
  });
});

test('a text of a condition that is longer than its kind takes is cut, the rest of the status is written, and it is written once', async () => {
  const sites = clientOf(api.cluster, siteKind);
  const conditions = [
    { type: 'Ready', status: 'False', reason: 'R'.repeat(2000), message: 'm'.repeat(40_000) },
  ] as const;
  const write = async (object: Site) =>
    applyStatus(sites, object, { fields: { nodeCount: 3 }, conditions }, { fieldManager: 'a' });
  await expect(sites.create(site('wordy')).then(write)).resolves.toBe(true);
  const seen = await sites.get('wordy');
  expect(seen.status?.nodeCount).toBe(3);
  expect(seen.status?.conditions).toMatchObject([{ reason: 'R'.repeat(1024), message: 'm'.repeat(32_768) }]);
  expect(await write(seen)).toBe(false);

  await nodes().create(node('wordy'));
  await applyStatus(nodes() as never, (await nodes().get('wordy')) as never, { conditions }, { fieldManager: 'a' });
  const [condition] = (await nodes().get('wordy')).status?.conditions ?? [];
  expect(condition).toMatchObject({ reason: 'R'.repeat(128), message: 'm'.repeat(4096) });
});

test('long lists come in pages', async () => {
  for (let index = 0; index < 7; index++)
    await nodes().create({ ...node(`page-${index}`), metadata: { name: `page-${index}`, labels: { page: 'x' } } });
  const first = await nodes().list({ labelSelector: 'page=x', limit: 5 });
  expect(first.items).toHaveLength(5);
  const rest = await nodes().list({ labelSelector: 'page=x', limit: 5, continueToken: first.continueToken });
  expect(rest.items.map(({ metadata }) => metadata.name)).toEqual(['page-5', 'page-6']);
  expect(rest.continueToken).toBeUndefined();
});

test('a watch goes on from a list without a gap', async () => {
  const { resourceVersion } = await nodes().list();
  await nodes().create(node('watched'));
  await nodes().delete('watched');
  const seen: string[] = [];
  const stop = new AbortController();
  for await (const event of nodes().watch({ resourceVersion, signal: stop.signal })) {
    if (event.type === 'ADDED' || event.type === 'DELETED') seen.push(`${event.type} ${event.object.metadata.name}`);
    if (event.type === 'DELETED') break;
  }
  expect(seen).toEqual(['ADDED watched', 'DELETED watched']);
});

test('repeated Events become one with a series', async () => {
  const about = await nodes().create(node('eventful'));
  const { events } = coreClients(api.cluster);
  const recorder = createEventRecorder({ events, controller: 'unbounded/test', logger: silentLogger });
  for (let turn = 0; turn < 3; turn++)
    recorder.record({ about, type: 'Warning', reason: 'Full', action: 'Allocate', note: 'pool is full' });
  await recorder.flush();
  const seen = (await events.listAll({ namespace: 'default' })).filter(
    ({ regarding }) => regarding?.name === 'eventful',
  );
  expect(seen).toHaveLength(1);
  expect(seen[0]).toMatchObject({ reason: 'Full', note: 'pool is full', type: 'Warning', series: { count: 3 } });
});
