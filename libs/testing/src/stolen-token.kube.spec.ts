import { annotations } from '@unbounded/crds';
import { type Cluster, openCluster } from '@unbounded/kube';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { NAMESPACE } from './chart.ts';
import {
  answerTo,
  type ApiServer,
  installAccessRules,
  kubeconfigOf,
  nodeObject,
  ourPath,
  poolObject,
  resetCluster,
  siteObject,
  startApiServer,
} from './index.ts';
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
} from './stolen-token.testdata.ts';

/** What somebody can do with the token of one of our programs, write by write, with the chart's own roles and policies. */

let api: ApiServer;
const thieves = new Map<Who, Cluster>();
const post = (path: string, body: object): Promise<unknown> =>
  api.cluster.transport.send({ method: 'POST', path, body });

beforeAll(async () => {
  api = await startApiServer();
  await resetCluster(api.cluster);
  await installAccessRules(api);
  const nodes = { name: 'mine', labels: { zone: 'z' }, annotations: { [annotations.wireGuardPort]: '51821' } };
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

test.each(allowed)('%s may write %s', async (who, _, write) => {
  expect(await answerTo(thieves.get(who)!, write)).toBe('taken');
});

test.each(forbidden)('%s may not write %s', async (who, _, write, refusal) => {
  const status = refusal === FIXED || refusal === ONCE ? 422 : 403;
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
