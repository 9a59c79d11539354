import { ApiError } from '@unbounded/kube';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { type ApiServer, ourPath, poolObject, resetCluster, siteObject, startApiServer, until } from './index.ts';

/** Objects from before a rule was there, as docs/operations.md tells who upgrades. */

const KINDS = ['sites', 'gatewaypools'] as const;
const crdPath = (plural: string) =>
  `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${plural}.net.unbounded-cloud.io`;
interface Crd {
  readonly metadata: { readonly resourceVersion?: string };
  readonly spec: object;
}

let api: ApiServer;
const send = (method: 'GET' | 'POST' | 'PUT', path: string, body?: object, query = {}): Promise<unknown> =>
  api.cluster.transport.send({ method, path, query, ...(body ? { body } : {}) });
const change = (path: string, spec: object): Promise<unknown> =>
  api.cluster.transport.send({
    method: 'PATCH',
    path,
    contentType: 'application/merge-patch+json',
    body: { spec },
  });
const refusalOf = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'taken',
    (error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
      return error.message;
    },
  );

beforeAll(async () => {
  api = await startApiServer();
  await resetCluster(api.cluster);
  const present = new Map<string, Crd>();
  for (const plural of KINDS) {
    const crd = (await send('GET', crdPath(plural))) as Crd;
    present.set(plural, crd);
    const withoutRules = JSON.parse(
      JSON.stringify(crd, (key, value: unknown) => (key === 'x-kubernetes-validations' ? undefined : value)),
    ) as Crd;
    await send('PUT', crdPath(plural), withoutRules);
  }
  const nodeCidrs = ['fd00::/8'];
  await until('Site', () => send('POST', ourPath('sites'), siteObject('old', { nodeCidrs })));
  await until('pool', () => send('POST', ourPath('gatewaypools'), poolObject('old', { routedCidrs: ['2000::/3'] })));
  for (const plural of KINDS) {
    const { metadata } = (await send('GET', crdPath(plural))) as Crd;
    const { spec } = present.get(plural)!;
    await send('PUT', crdPath(plural), { ...present.get(plural), metadata, spec });
  }
  const dry = { dryRun: 'All' };
  const isRefused = async (path: string, body: object) =>
    (await refusalOf(send('POST', path, body, dry))).includes('is too wide');
  await until('rules', () => isRefused(ourPath('sites'), siteObject('new', { nodeCidrs })));
  await until('rules', () => isRefused(ourPath('gatewaypools'), poolObject('new', { routedCidrs: ['2000::/3'] })));
});
afterAll(() => api?.stop());

test.each([
  ['nodeCidrs of a Site', ourPath('sites', 'old'), { tunnelMTU: 1300 }, { nodeCidrs: ['fd00::/8', '10.9.0.0/16'] }],
  [
    'routedCidrs of a pool',
    ourPath('gatewaypools', 'old'),
    { tunnelMTU: 1300 },
    { routedCidrs: ['2000::/3', '10.9.0.0/16'] },
  ],
])('%s that are too wide may stay while they are as they were, and no longer', async (_, path, other, more) => {
  expect(await refusalOf(change(path, other))).toBe('taken');
  expect(await refusalOf(change(path, more))).toContain('is too wide');
});

test('a field that is no more is refused where fields are validated strictly, as kubectl does', async () => {
  const { spec, ...rest } = siteObject('a');
  const site = { ...rest, spec: { ...spec, localCidrs: ['10.0.0.0/8'] } };
  const answer = await refusalOf(send('POST', ourPath('sites'), site, { fieldValidation: 'Strict', dryRun: 'All' }));
  expect(answer).toContain('unknown field "spec.localCidrs"');
});
