import type { Cluster } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import {
  answerTo,
  type ApiServer,
  borrowApiServer,
  installAccessRules,
  kubeconfigOf,
  nodeObject,
  ourPath,
  resetCluster,
  siteObject,
  type Write,
} from '@unbounded/testing';
import { NAMESPACE } from '@unbounded/testing/chart';
import { afterAll, beforeAll, expect, test } from 'vitest';

/** What the program may write with its token, by the chart's own roles and policies. */

let api: ApiServer;
let aggregator: Cluster;
let agent: Cluster;

const inNamespace = (plural: string, name = '', namespace: string = NAMESPACE): string =>
  `/api/v1/namespaces/${namespace}/${plural}${name && `/${name}`}`;
const create = (path: string, body: object): Write => ({ verb: 'create', path, body });
const merge = (path: string, body: object): Write => ({ verb: 'merge', path, body });

const data = (...keys: string[]) => ({ data: Object.fromEntries(keys.map((key) => [key, 'eA=='])) });
const ours = { annotations: { 'net.unbounded-cloud.io/made-by': 'status-aggregator' } };
const secret = (name: string, more: object = {}, metadata: object = ours) => ({
  ...{ apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/tls' },
  ...data('tls.crt', 'tls.key', 'ca.crt', 'ca.key'),
  metadata: { name, ...metadata },
  ...more,
});
const configMap = (name: string, more: object = { data: { 'ca.crt': 'x' } }, metadata: object = {}) => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap' },
  metadata: { name, ...metadata },
  ...more,
});
const review = (group: string, kind: string, spec: object): Write =>
  create(`/apis/${group}/v1/${kind.toLowerCase()}s`, { apiVersion: `${group}/v1`, kind, spec });

beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
  await installAccessRules(api);
  const post = (path: string, body: object) => api.cluster.transport.send({ method: 'POST', path, body });
  await post('/api/v1/nodes', nodeObject({ name: 'n1' }));
  await post(ourPath('sites'), siteObject('s1'));
  await post(inNamespace('secrets'), secret('relay-links', { type: 'Opaque' }, {}));
  await post(inNamespace('secrets'), secret('status-aggregator-tls'));
  await post(inNamespace('configmaps'), configMap('relay-keys'));
  await post(inNamespace('configmaps'), configMap('status-aggregator-ca'));
  aggregator = openCluster({ kubeconfig: await kubeconfigOf(api, 'status-aggregator') });
  agent = openCluster({ kubeconfig: await kubeconfigOf(api, 'node-dataplane', 'n1') });
});
afterAll(async () => {
  for (const cluster of [aggregator, agent]) cluster?.close();
  await api?.stop();
});

test.each<[what: string, write: Write]>([
  [
    'its certificate',
    { verb: 'merge', path: inNamespace('secrets', 'status-aggregator-tls'), body: data('tls.crt', 'tls.key') },
  ],
  ['its authority', merge(inNamespace('configmaps', 'status-aggregator-ca'), { data: { 'ca.crt': 'y' } })],
])('status-aggregator may replace %s', async (_, { path, body }) => {
  const current = (await aggregator.transport.send({ method: 'GET', path })) as object;
  await aggregator.transport.send({ method: 'PUT', path, body: { ...current, ...body }, query: { dryRun: 'All' } });
  expect(await answerTo(aggregator, merge(path, body!))).not.toBe('taken'); // it has no patch
});

test('status-aggregator may ask whose a token is, and what a user may read', async () => {
  const attributes = { group: 'net.unbounded-cloud.io', resource: 'status', verb: 'get' };
  expect(await answerTo(aggregator, review('authentication.k8s.io', 'TokenReview', { token: 'x' }))).toBe('taken');
  const subject = { user: 'u', resourceAttributes: attributes };
  expect(await answerTo(aggregator, review('authorization.k8s.io', 'SubjectAccessReview', subject))).toBe('taken');
});

const ONLY = 'may write only';
const RBAC = 'cannot';
test.each<[what: string, write: Write, refusal: string]>([
  ['a Secret of another name', create(inNamespace('secrets'), secret('other')), ONLY],
  [
    'a Secret in another namespace',
    create(inNamespace('secrets', '', 'default'), secret('status-aggregator-tls')),
    RBAC,
  ],
  ['the Secret of the relay', merge(inNamespace('secrets', 'relay-links'), data('tls.crt')), RBAC],
  [
    'a token of another account',
    create(
      inNamespace('secrets'),
      secret(
        'status-aggregator-tls',
        { type: 'kubernetes.io/service-account-token', ...data('ca.crt') },
        { annotations: { 'kubernetes.io/service-account.name': 'gateway-health' } },
      ),
    ),
    ONLY,
  ],
  [
    'a certificate with something beside it',
    create(inNamespace('secrets'), secret('status-aggregator-tls', data('tls.crt', 'tls.key', 'more'))),
    ONLY,
  ],
  [
    'a certificate with an owner',
    create(inNamespace('secrets'), secret('status-aggregator-tls', {}, { labels: { a: 'b' } })),
    'without labels',
  ],
  ['a ConfigMap of another name', create(inNamespace('configmaps'), configMap('kube-root-ca.crt')), ONLY],
  [
    'an authority with something beside it',
    create(inNamespace('configmaps'), configMap('status-aggregator-ca', { data: { more: 'x' } })),
    ONLY,
  ],
  [
    'an authority with bytes',
    create(inNamespace('configmaps'), configMap('status-aggregator-ca', { binaryData: { x: 'eA==' } })),
    ONLY,
  ],
  ['the keys of the relay', merge(inNamespace('configmaps', 'relay-keys'), { data: { x: 'y' } }), RBAC],
  ['that its certificate goes', { verb: 'delete', path: inNamespace('secrets', 'status-aggregator-tls') }, RBAC],
  ['a Node', merge('/api/v1/nodes/n1', { metadata: { labels: { a: 'b' } } }), RBAC],
  ['the status of a Node', merge('/api/v1/nodes/n1/status', { status: {} }), RBAC],
  ['a Site', merge(ourPath('sites', 's1'), { metadata: { labels: { a: 'b' } } }), RBAC],
  ['a Pod', create(inNamespace('pods'), { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: {} }), RBAC],
  ['an Event', create('/apis/events.k8s.io/v1/namespaces/default/events', {}), RBAC],
  [
    'a token of another',
    create(inNamespace('serviceaccounts', 'gateway-health/token'), { spec: { audiences: [] } }),
    RBAC,
  ],
])('status-aggregator may not write %s', async (_, write, refusal) => {
  expect(await answerTo(aggregator, write)).toMatchObject({
    status: 403,
    message: expect.stringContaining(refusal) as unknown,
  });
});

test('status-aggregator reads no Secret but its own', async () => {
  const read = (path: string) => aggregator.transport.send({ method: 'GET', path });
  expect(await read(inNamespace('secrets', 'status-aggregator-tls'))).toHaveProperty('data');
  for (const path of [inNamespace('secrets', 'relay-links'), inNamespace('secrets'), inNamespace('pods')])
    await expect(read(path), path).rejects.toThrow(RBAC);
});

test('an agent reads the authority, and neither writes it nor reads the certificate', async () => {
  const path = inNamespace('configmaps', 'status-aggregator-ca');
  expect(await agent.transport.send({ method: 'GET', path })).toHaveProperty('data');
  expect(await answerTo(agent, merge(path, { data: { 'ca.crt': 'mine' } }))).toMatchObject({ status: 403 });
  const key = agent.transport.send({ method: 'GET', path: inNamespace('secrets', 'status-aggregator-tls') });
  await expect(key).rejects.toThrow(RBAC);
});
