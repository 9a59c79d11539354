import { AGENT_ANNOTATIONS, annotations, LONGEST_AGENT_ANNOTATION } from '@unbounded/crds';
import type { Cluster } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { longestAnnotations } from './agent-writes.testdata.ts';
import { NAMESPACE, renderChart } from './chart.ts';
import {
  answerTo,
  type ApiServer,
  borrowApiServer,
  installAccessRules,
  kubeconfigOf,
  nodeObject,
  ourPath,
  poolObject,
  resetCluster,
  siteObject,
  until,
} from './index.ts';
import { coreEvents, smallAllowed, smallForbidden, TOO_LONG, VALUE } from './small-writes.testdata.ts';
import {
  CONTROLLERS,
  AGENT,
  type Who,
  merge,
  leases,
  lease,
  regarding,
  eventObject,
  events,
  event,
  poolNode,
  allowed,
  forbidden,
  FIXED,
  ONCE,
  RBAC,
} from './stolen-token.testdata.ts';

/** What somebody can do with the token of one of our programs, write by write, with the chart's own roles and policies. */

let api: ApiServer;
const thieves = new Map<Who, Cluster>();
const post = (path: string, body: object): Promise<unknown> =>
  api.cluster.transport.send({ method: 'POST', path, body });

beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
  await installAccessRules(api);
  const notes = { [annotations.wireGuardPort]: '51821', [annotations.rotateWireGuardKey]: 'now' };
  const nodes = { name: 'mine', labels: { zone: 'z' }, annotations: notes };
  await post('/api/v1/nodes', nodeObject(nodes));
  await post('/api/v1/nodes', nodeObject({ name: 'other' }));
  await post('/api/v1/nodes', nodeObject({ name: 'settled', podCIDRs: ['10.9.0.0/24'] }));
  const protectedBy = (object: object) => ({
    ...object,
    metadata: { ...(object as { metadata: object }).metadata, finalizers: ['example.com/kept'] },
  });
  await post(ourPath('sites'), protectedBy(siteObject('a')));
  await post(ourPath('gatewaypools'), protectedBy(poolObject('p')));
  for (const name of ['mine', 'else']) await post(ourPath('gatewaypoolnodes'), poolNode(name));
  await post(leases(), {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'taken', namespace: NAMESPACE },
  });
  const told = [
    ...CONTROLLERS.map((who) => [who, who, 'mine']),
    ['kubelet', 'kubelet', 'mine'],
    ['mine', AGENT, 'mine'],
    ['other', AGENT, 'other'],
  ] as const;
  for (const [name = '', by = '', about = ''] of told)
    await post(
      events(),
      eventObject(by, regarding.node(about), { metadata: { name: `of-${name}`, namespace: 'default' } }),
    );
  for (const who of CONTROLLERS) thieves.set(who, openCluster({ kubeconfig: await kubeconfigOf(api, who) }));
  thieves.set(AGENT, openCluster({ kubeconfig: await kubeconfigOf(api, AGENT, 'mine') }));
});
afterAll(async () => {
  for (const cluster of thieves.values()) cluster.close();
  await api?.stop();
});

test.each([...allowed, ...smallAllowed])('%s may write %s', async (who, _, write) => {
  expect(await answerTo(thieves.get(who)!, write)).toBe('taken');
});

test.each([...forbidden, ...smallForbidden])('%s may not write %s', async (who, _, write, refusal) => {
  const status = [FIXED, ONCE, TOO_LONG, VALUE].includes(refusal) ? 422 : 403;
  const message: unknown = expect.stringContaining(refusal);
  expect(await answerTo(thieves.get(who)!, write)).toEqual({ status, message });
});

test.each([
  ['a Site', merge(ourPath('sites', 'a'), { spec: { tunnelProtocol: 'None' } })],
  ['an Event', event('kubelet', regarding.node('mine'))],
  ['a Lease', lease('kube-scheduler')],
])('other users are not affected: they write %s', async (_, write) => {
  expect(await answerTo(api.cluster, write)).toBe('taken');
});

test('the chart’s list of annotations is the one of the code, and its patterns take no value that is longer', () => {
  const policy = renderChart().find(
    ({ kind, metadata }) => kind === 'ValidatingAdmissionPolicy' && metadata.name === 'unbounded-node-agent-node',
  ) as unknown as { spec: { variables: { name: string; expression: string }[] } };
  const { expression } = policy.spec.variables.find(({ name }) => name === 'patterns')!;
  const listed = [...expression.matchAll(/'([^']+)': '([^']+)'/g)].map(([, name, pattern]) => [name, pattern]);
  expect(Object.fromEntries(listed)).toEqual(AGENT_ANNOTATIONS);
  expect(Object.keys(longestAnnotations).toSorted()).toEqual(Object.keys(AGENT_ANNOTATIONS).toSorted());
  for (const [name, value] of Object.entries(longestAnnotations)) {
    expect(value, name).toMatch(new RegExp(AGENT_ANNOTATIONS[name]!));
    expect(value.length, name).toBeLessThanOrEqual(LONGEST_AGENT_ANNOTATION);
  }
});

test('an agent writes no core/v1 Events, also where a role of the cluster would let it', async () => {
  const agent = thieves.get(AGENT)!;
  const answers = (): Promise<unknown[]> =>
    Promise.all(coreEvents.map(async ([what, write]) => [what, await answerTo(agent, write)]));
  const refused = (text: string): unknown[] =>
    coreEvents.map(([what]) => [what, { status: 403, message: expect.stringContaining(text) as unknown }]);
  expect(await answers()).toEqual(refused(RBAC));
  const names = ['core-events', '--namespace=default'];
  api.kubectl('create', 'role', ...names, '--verb=create', '--resource=events');
  api.kubectl('create', 'rolebinding', ...names, '--role=core-events', `--serviceaccount=${NAMESPACE}:${AGENT}`);
  await until('the role is known', async () => !JSON.stringify(await answers()).includes(RBAC));
  expect(await answers()).toEqual(refused('may write Events by events.k8s.io only'));
  api.kubectl('delete', 'role,rolebinding', ...names);
});
