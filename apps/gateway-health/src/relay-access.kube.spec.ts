import type { Cluster } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import {
  answerTo,
  type ApiServer,
  borrowApiServer,
  installAccessRules,
  kubeconfigOf,
  resetCluster,
  type Write,
} from '@unbounded/testing';
import { NAMESPACE } from '@unbounded/testing/chart';
import { refused } from '@unbounded/testing/write-rows';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import {
  ADDRESSES,
  MARKS,
  RBAC,
  type Which,
  apply,
  but,
  deployment,
  elsewhere,
  forbidden,
  inContainer,
  merged,
  pathOf,
  planned,
} from './relay-access.testdata.ts';
import { additions, inTemplate } from './relay-additions.testdata.ts';

/** What somebody can do with gateway-health's token: its right to make pods, Services and Secrets, and the chart's policies. */

let api: ApiServer;
let thief: Cluster;
beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
  const image = { repository: 'registry.example.com/unbounded', tag: '1', pullSecrets: ['pull'] };
  await installAccessRules(api, { global: { image } });
  thief = openCluster({ kubeconfig: await kubeconfigOf(api, 'gateway-health') });
});
afterAll(async () => {
  thief?.close();
  await api?.stop();
});

/** As the program would, so that what a later apply leaves out goes. */
const put = (which: Which, body: object): Promise<unknown> =>
  api.cluster.transport.send({
    method: 'PATCH',
    path: pathOf(which),
    query: { fieldManager: 'test', force: true },
    contentType: 'application/apply-patch+yaml',
    body,
  });

const answer = (write: Write) => answerTo(thief, write);

test('its pods are such as Kubernetes calls restricted', async () => {
  const level = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'restricted', labels: level } };
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  const at = '/api/v1/namespaces/restricted';
  const { spec } = deployment.spec.template;
  const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'relay' }, spec };
  await api.cluster.transport.send({ method: 'POST', path: '/api/v1/namespaces', body: namespace });
  await api.cluster.transport.send({ method: 'POST', path: `${at}/serviceaccounts`, body: account });
  expect(await answerTo(api.cluster, { verb: 'create', path: `${at}/pods`, body })).toBe('taken');
  const onHost = { ...body, spec: { ...spec, hostNetwork: true } };
  expect(await answerTo(api.cluster, { verb: 'create', path: `${at}/pods`, body: onHost })).toEqual(
    refused('PodSecurity'),
  );
});

test.each(Object.keys(planned) as Which[])('it may make the %s of a relay', async (which) => {
  expect(await answer(apply(which))).toBe('taken');
});
test.each(forbidden)('whoever has its token makes nothing that %s', async (_, write, refusal) => {
  expect(await answer(write)).toEqual(refused(refusal));
});
test.each(elsewhere)('nor a %s', async (_, write) => {
  expect(await answer(write)).toEqual(refused(RBAC));
});

describe('of a relay that runs', () => {
  beforeAll(async () => {
    for (const which of Object.keys(planned) as Which[]) await put(which, planned[which]);
  });

  test.each(Object.keys(planned) as Which[])('it may keep the %s as it is, and take it away', async (which) => {
    expect(await answer(apply(which))).toBe('taken');
    expect(await answer({ verb: 'delete', path: pathOf(which) })).toBe('taken');
  });

  // Kubernetes itself lets nobody change these.
  const fixed = new Set([
    'gets the token of another account',
    'writes a Secret of another type',
    'chooses its balancer',
  ]);
  const changes = forbidden.filter(([what]) => !fixed.has(what));
  test.each(changes)('whoever has its token makes of it nothing that %s', async (_, write, refusal) => {
    expect(await answer(write)).toEqual(refused(refusal));
  });

  test('it may change what the Mesh says: replicas, the kind of Service and its port', async () => {
    expect(await answer(but('deployment', { spec: { replicas: 3 } }))).toBe('taken');
    expect(
      await answer(
        but('service', { spec: { type: 'NodePort', ports: [{ name: 'relay', port: 443, targetPort: 'relay' }] } }),
      ),
    ).toBe('taken');
  });

  test('an operator’s address, label and annotation stay, and keep it from nothing', async () => {
    const path = pathOf('service');
    const contentType = 'application/merge-patch+json';
    const metadata = { labels: { team: 'a' }, annotations: { 'example.com/balancer': 'b' } };
    await api.cluster.transport.send({
      method: 'PATCH',
      path,
      contentType,
      body: { metadata, spec: { loadBalancerIP: '192.0.2.7' } },
    });
    expect(await answer(apply('service'))).toBe('taken');
    expect(await answer({ verb: 'merge', path, body: { spec: { loadBalancerIP: '192.0.2.8' } } })).toEqual(
      refused(ADDRESSES),
    );
    expect(
      await answer({ verb: 'merge', path, body: { metadata: { annotations: { 'example.com/balancer': null } } } }),
    ).toEqual(refused(MARKS));
  });

  describe.each(additions)('to which somebody else adds %s', (_, added, changed) => {
    const head = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'relay' } };
    const put = (cluster: Cluster, fieldManager: string, body: object): Promise<unknown> =>
      cluster.transport.send({
        method: 'PATCH',
        path: pathOf('deployment'),
        query: { fieldManager, force: true },
        contentType: 'application/apply-patch+yaml',
        body,
      });
    const add = (cluster: Cluster, part: object) => put(cluster, 'another', merged(head, part) as object);
    const forbidden = { status: 403, message: expect.stringContaining('denied request') as unknown };
    beforeAll(async () => {
      await api.cluster.transport.send({ method: 'DELETE', path: pathOf('deployment') });
      await put(thief, 'test', deployment);
    });

    test('whoever has its token may not', async () => {
      await expect(add(thief, added)).rejects.toMatchObject(forbidden);
    });

    test('it stays, and keeps gateway-health from no change', async () => {
      const withIt = (await add(api.cluster, added)) as typeof deployment;
      const scaled = { ...deployment, spec: { ...deployment.spec, replicas: 2 } };
      await expect(put(thief, 'test', scaled)).resolves.toBeDefined();
      const now = await api.cluster.transport.send({ method: 'GET', path: pathOf('deployment') });
      expect((now as typeof deployment).spec).toEqual({ ...withIt.spec, replicas: 2 });
      expect(withIt.spec.template).not.toEqual(deployment.spec.template);
    });

    test('whoever has its token may not change it', async () => {
      await expect(add(thief, changed)).rejects.toMatchObject(forbidden);
    });
  });

  test('an image that runs may stay until the new gateway-health changes it, and no other may come', async () => {
    await installAccessRules(api, {
      global: { image: { repository: 'registry.example.com/unbounded', tag: '2', pullSecrets: ['pull'] } },
    });
    expect(await answer(apply('deployment'))).toBe('taken');
    const restart = inTemplate({ annotations: { 'kubectl.kubernetes.io/restartedAt': '2026-01-01T00:00:00Z' } });
    const contentType = 'application/merge-patch+json';
    await api.cluster.transport.send({ method: 'PATCH', path: pathOf('deployment'), contentType, body: restart });
    expect(await answer(inContainer({ image: 'registry.example.com/unbounded:2' }))).toBe('taken');
    expect(await api.cluster.transport.send({ method: 'GET', path: pathOf('deployment') })).toMatchObject(restart);
    expect(await answer(inContainer({ image: 'registry.example.com/unbounded:3' }))).toEqual(
      refused('run the image registry.example.com/unbounded:2'),
    );
  });
});

describe('of pods', () => {
  const labels = { 'app.kubernetes.io/name': 'relay' };
  const podNamed = (name: string, its: object) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: its, annotations: { a: 'b' } },
    spec: {
      automountServiceAccountToken: false,
      containers: [{ name: 'a', image: 'registry.example.com/unbounded:1' }],
    },
  });
  const at = `/api/v1/namespaces/${NAMESPACE}/pods`;
  const annotate = (annotations: object) => ({ metadata: { annotations } });
  const patch = (body: object, name = 'relay-1'): Write => ({ verb: 'merge', path: `${at}/${name}`, body });
  const NOTHING_ELSE = 'nothing of pods but the annotation';

  beforeAll(async () => {
    const make = (path: string, body: object) => api.cluster.transport.send({ method: 'POST', path, body });
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
    await make(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts`, account).catch(() => undefined);
    await make(at, podNamed('relay-1', labels));
    await make(at, podNamed('other', { app: 'x' }));
  });

  test('it may say on those of relays which list of keys they are to have', async () => {
    const wanted = annotate({ 'net.unbounded-cloud.io/relay-keys': '0123456789abcdef' });
    expect(await answer(patch(wanted))).toBe('taken');
  });

  test.each<[string, Write, string]>([
    ['another annotation', patch(annotate({ c: 'd' })), NOTHING_ELSE],
    ['the annotation of somebody else', patch(annotate({ a: null })), NOTHING_ELSE],
    ['a text that is no digest', patch(annotate({ 'net.unbounded-cloud.io/relay-keys': 'x y' })), NOTHING_ELSE],
    ['a label', patch({ metadata: { labels: { app: 'y' } } }), NOTHING_ELSE],
    ['a finalizer', patch({ metadata: { finalizers: ['example.com/a'] } }), NOTHING_ELSE],
    [
      'its image',
      {
        verb: 'apply',
        path: `${at}/relay-1`,
        body: {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name: 'relay-1' },
          spec: { containers: [{ name: 'a', image: 'other' }] },
        },
      },
      NOTHING_ELSE,
    ],
    ['its deadline', patch({ spec: { activeDeadlineSeconds: 1 } }), NOTHING_ELSE],
    ['a pod of others', patch(annotate({ 'net.unbounded-cloud.io/relay-keys': '0' }), 'other'), NOTHING_ELSE],
    // Of a server-side apply that would create Kubernetes 1.31 does not say what was forbidden.
    ['a new pod', { verb: 'apply', path: `${at}/relay-2`, body: podNamed('relay-2', labels) }, 'is forbidden'],
    ['a new pod of any name', { verb: 'create', path: at, body: podNamed('relay-3', labels) }, RBAC],
    ['an end', { verb: 'delete', path: `${at}/relay-1` }, RBAC],
  ])('but not %s', async (_, write, refusal) => {
    expect(await answer(write)).toEqual(refused(refusal));
  });
});

describe('of what others have made', () => {
  const theirs = (which: Which): object =>
    merged(planned[which], { metadata: { labels: { 'app.kubernetes.io/managed-by': 'Helm' } } }) as object;
  beforeAll(async () => {
    for (const which of Object.keys(planned) as Which[]) {
      await api.cluster.transport.send({ method: 'DELETE', path: pathOf(which) }).catch(() => undefined);
      await put(which, theirs(which));
    }
  });

  test.each(Object.keys(planned) as Which[])('it may neither change nor delete the %s', async (which) => {
    expect(await answer(apply(which))).toEqual(refused('may change only what it has made'));
    expect(await answer({ verb: 'delete', path: pathOf(which) })).toEqual(refused('may change only what it has made'));
  });
});
