import type { Cluster } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import { type OwnApiServer, startApiServer, until } from '@unbounded/testing';
import { silentLogger } from '@unbounded/telemetry';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';

import { AGENT_AUDIENCE, createAgentAccess } from '../access/agent-access.ts';
import { createReviews } from '../access/reviews.ts';
import { createViewerAccess } from '../access/viewer-access.ts';
import { ask, dialStream, report, startTestApi } from './test-api.testdata.ts';

/** Tokens of a real API server. The aggregator itself has the role that reviewers have, system:auth-delegator, and no more. */

const NAMESPACE = 'status-test';
/** Verdicts are soon forgotten here. */
const VERDICT_MS = 200;
const limits = { grantedMs: VERDICT_MS, refusedMs: VERDICT_MS, staleMs: 60_000 };

let kube: OwnApiServer;
let reviewer: Cluster;
let api: Awaited<ReturnType<typeof startTestApi>>;

/** The time of verdicts goes on by so much at once. */
const passMs = (ms: number): void => {
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + ms);
};
afterAll(() => void vi.restoreAllMocks());

const post = <T>(path: string, body: object): Promise<T> =>
  kube.cluster.transport.send({ method: 'POST', path, body }) as Promise<T>;

const createPod = async (name: string, nodeName: string | undefined, serviceAccountName = 'agent'): Promise<object> => {
  const { metadata } = await post<{ metadata: { uid: string } }>(`/api/v1/namespaces/${NAMESPACE}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { nodeName, serviceAccountName, containers: [{ name: 'c', image: 'none' }] },
  });
  return { apiVersion: 'v1', kind: 'Pod', name, uid: metadata.uid };
};

interface TokenInit {
  readonly account?: string;
  readonly audiences?: readonly string[];
  readonly pod?: object | undefined;
}

/** As the kubelet asks for a projected token. */
const tokenOf = async ({ account = 'agent', audiences = [AGENT_AUDIENCE], pod }: TokenInit): Promise<string> => {
  const body = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { audiences, boundObjectRef: pod, expirationSeconds: 600 },
  };
  const path = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${account}/token`;
  return (await post<{ status: { token: string } }>(path, body)).status.token;
};

const viewerToken = (): Promise<string> => tokenOf({ account: 'viewer', audiences: [] });
const grant = (): string =>
  kube.kubectl(
    'create',
    'clusterrolebinding',
    'view',
    '--clusterrole=status-viewer',
    `--serviceaccount=${NAMESPACE}:viewer`,
  );
const revoke = (): string => kube.kubectl('delete', 'clusterrolebinding', 'view');

beforeAll(async () => {
  kube = await startApiServer();
  kube.kubectl('create', 'namespace', NAMESPACE);
  for (const account of ['agent', 'other', 'viewer', 'aggregator'])
    kube.kubectl('create', 'serviceaccount', account, '-n', NAMESPACE);
  for (const name of ['node-a', 'node-b'])
    await post('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name } });
  kube.kubectl('create', 'clusterrole', 'status-viewer', '--verb=get', '--resource=nodes'); // until its group is served kubectl knows no other
  kube.kubectl(
    'patch',
    'clusterrole',
    'status-viewer',
    '--type=merge',
    '-p',
    JSON.stringify({ rules: [{ apiGroups: ['net.unbounded-cloud.io'], resources: ['status'], verbs: ['get'] }] }),
  );
  const delegate = ['--clusterrole=system:auth-delegator', `--serviceaccount=${NAMESPACE}:aggregator`];
  kube.kubectl('create', 'clusterrolebinding', 'delegate', ...delegate);
  reviewer = openCluster({ kubeconfig: kube.kubeconfigFor(await kube.serviceAccountToken(NAMESPACE, 'aggregator')) });
  const reviews = createReviews({ cluster: reviewer, logger: silentLogger, timeoutMs: 2000 });
  const common = { reviews, now: () => new Date(), count: () => {} };
  api = await startTestApi({
    agentAccess: createAgentAccess({ ...common, account: { namespace: NAMESPACE, name: 'agent' }, limits }),
    viewerAccess: createViewerAccess({ ...common, tokenLimits: limits, accessLimits: limits }),
    streamLimits: { tickMs: 20, recheckMs: 100 },
  });
  await until('reviews are allowed', async () => (await report(api.port, '{}', {}, 'nobody')).status === 401);
});
afterAll(async () => {
  await api?.part.stop();
  reviewer?.close();
  await kube?.stop();
});

const refusal = (status: number, reason: string) => ({ status, json: { reason } });

test('the token of a pod reports for the node of the pod, and for no other', async () => {
  const [a, b] = [await createPod('agent-a', 'node-a'), await createPod('agent-b', 'node-b')];
  expect(await report(api.port, '{"node":"node-b"}', {}, await tokenOf({ pod: a }))).toMatchObject({ status: 204 });
  expect(await report(api.port, '{"node":"node-b"}', {}, await tokenOf({ pod: b }))).toMatchObject({ status: 204 });
  expect(api.accepted.map(([node]) => node)).toEqual(['node-a', 'node-b']);
});

test('tokens for another audience, of another account, or of no node are refused', async () => {
  const pod = await createPod('agent-c', 'node-a');
  const other = await createPod('other', 'node-a', 'other');
  const waiting = await createPod('unscheduled', undefined);
  const answer = async (init: TokenInit) => report(api.port, '{}', {}, await tokenOf(init));
  expect(await answer({ pod, audiences: ['somebody'] })).toMatchObject(refusal(401, 'Unauthenticated'));
  expect(await answer({ pod, audiences: [] })).toMatchObject(refusal(401, 'Unauthenticated'));
  expect(await answer({ pod: other, account: 'other' })).toMatchObject(refusal(403, 'NotAnAgent'));
  expect(await answer({})).toMatchObject(refusal(403, 'NotBoundToNode'));
  expect(await answer({ pod: waiting })).toMatchObject(refusal(403, 'NotBoundToNode'));
  expect(await answer({ pod, audiences: ['somebody', AGENT_AUDIENCE] })).toMatchObject({ status: 204 });
});

test('a token changed by one character is refused', async () => {
  const token = await tokenOf({ pod: await createPod('agent-d', 'node-a') });
  const [header = '', payload = '', signature = ''] = token.split('.');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as {
    'kubernetes.io': { node: { name: string } };
  };
  claims['kubernetes.io'].node.name = 'node-b';
  const forged = [header, Buffer.from(JSON.stringify(claims)).toString('base64url'), signature].join('.');
  expect(await report(api.port, '{}', {}, forged)).toMatchObject(refusal(401, 'Unauthenticated'));
});

test('the token of a pod that is gone is refused within the time of a verdict', async () => {
  const token = await tokenOf({ pod: await createPod('agent-e', 'node-a') });
  expect((await report(api.port, '{}', {}, token)).status).toBe(204);
  kube.kubectl('delete', 'pod', 'agent-e', '-n', NAMESPACE, '--force', '--grace-period=0');
  // The API server itself remembers a token for 10 s.
  await until('it is refused', async () => (await report(api.port, '{}', {}, token)).status === 401);
});

test('viewers need the permission; without it any more their streams end', async () => {
  const token = await viewerToken();
  const view = () => ask(api.port, '/v1alpha1/nodes/n1', { token });
  expect(await view()).toMatchObject(refusal(403, 'Forbidden'));
  using early = dialStream(api.port, { token });
  expect(await early.outcome).toMatchObject({ status: 403 });
  grant();
  await until('it is granted', async () => (await view()).status === 200);
  using client = dialStream(api.port, { token });
  expect(await client.outcome).toBe('open');
  revoke();
  expect(await client.closed).toBe(4403);
  expect(await view()).toMatchObject(refusal(403, 'Forbidden'));
});

test('the token of an agent is none of a viewer, and the other way round', async () => {
  const agent = await tokenOf({ pod: await createPod('agent-f', 'node-a') });
  expect(await ask(api.port, '/v1alpha1/view', { token: agent })).toMatchObject(refusal(401, 'Unauthenticated'));
  expect(await report(api.port, '{}', {}, await viewerToken())).toMatchObject(refusal(401, 'Unauthenticated'));
});

test('while the API server is away known agents go on for a time, strangers get 503', async () => {
  const pod = await createPod('agent-g', 'node-c');
  const [known, unknown] = [await tokenOf({ pod }), await tokenOf({ pod })];
  expect((await report(api.port, '{}', {}, known)).status).toBe(204);
  await kube.kill();
  await new Promise((resolve) => setTimeout(resolve, VERDICT_MS));
  expect((await report(api.port, '{}', {}, known)).status).toBe(204);
  const answer = await report(api.port, '{}', {}, unknown);
  expect(answer).toMatchObject({ ...refusal(503, 'ReviewUnavailable'), headers: { 'retry-after': '5' } });
  passMs(limits.staleMs);
  await until('not for longer', async () => (await report(api.port, '{}', {}, known)).status === 503);
  await kube.start();
  await until('all is well', async () => (await report(api.port, '{}', {}, unknown)).status === 204);
});
