import { type Cluster, coreClients } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import {
  answerTo,
  type ApiServer,
  borrowApiServer,
  installAccessRules,
  kubeconfigOf,
  ourPath,
  until,
  type Write,
} from '@unbounded/testing';
import { NAMESPACE } from '@unbounded/testing/chart';
import { refused } from '@unbounded/testing/write-rows';
import { afterAll, beforeAll, expect, test } from 'vitest';

import {
  agentMay,
  agentMayNot,
  controllerMay,
  controllerMayNot,
  controllerMayNotByRole,
  inShop,
  POOL,
  RULE,
  sliceObject,
} from './access.testdata.ts';
import { createPod, prepareEgressCluster, SHOP, staticEgress } from './egress-cluster.testdata.ts';
import { simulateAgents } from './simulated-agents.testdata.ts';
import { createTestController } from './test-controller.testdata.ts';

/** What the programs may write, with the chart's own roles and policies. */

let api: ApiServer;
let controller: Cluster;
let agent: Cluster;
const post = (path: string, body: object): Promise<unknown> =>
  api.cluster.transport.send({ method: 'POST', path, body });

beforeAll(async () => {
  api = await borrowApiServer();
  await prepareEgressCluster(api);
  await installAccessRules(api);
  controller = openCluster({ kubeconfig: await kubeconfigOf(api, 'static-egress') });
  agent = openCluster({ kubeconfig: await kubeconfigOf(api, 'node-dataplane', 'n1') });
  await post(inShop('staticegressips'), RULE);
  await post(ourPath('egressippools'), POOL);
  for (const node of ['n1', 'n2']) await post(ourPath('egressnodeslices'), sliceObject(node));
});
afterAll(async () => {
  for (const cluster of [controller, agent]) cluster?.close();
  await api?.stop();
});

/** A role of the cluster that lets both do everything: what is still refused, policies refuse. */
const grantEverything = async (probe: readonly [cluster: Cluster, write: Write][]): Promise<void> => {
  const subjects = ['static-egress', 'node-dataplane'].map((name) => `--serviceaccount=${NAMESPACE}:${name}`);
  api.kubectl('create', 'clusterrolebinding', 'everything', '--clusterrole=cluster-admin', ...subjects);
  await until('the role is known', async () => {
    const answers = await Promise.all(probe.map(([cluster, write]) => answerTo(cluster, write)));
    return answers.every((answer) => !JSON.stringify(answer).includes(' cannot '));
  });
};

test.each(controllerMay)('static-egress may write %s', async (_, write) => {
  expect(await answerTo(controller, write)).toBe('taken');
});

test.each(controllerMayNotByRole)('static-egress may not write %s', async (_, write, refusal) => {
  expect(await answerTo(controller, write)).toEqual(refused(refusal));
});

test('with its own rights it settles a rule, and tells of pods and rules in their namespace; nothing that it asks is refused', async () => {
  await createPod(api.cluster, 1);
  await createPod(api.cluster, 2, { isHostNetwork: true });
  await using _agents = simulateAgents(api.cluster);
  const { start, killAll, clients } = createTestController(api);
  const app = start('--kubeconfig', await kubeconfigOf(api, 'static-egress'));
  await until('the rule has an owner', async () => {
    const { status } = await clients.rules.get('partner', { namespace: SHOP });
    return status?.addresses?.[0]?.node !== undefined;
  });
  await clients.rules.create(staticEgress('bad', { podSelector: {}, egressip: '192.0.2.1' }));
  await createPod(api.cluster, 3, { isHostNetwork: true });
  const { events } = coreClients(api.cluster);
  await until('Events', async () => {
    const about = new Set((await events.listAll({ namespace: SHOP })).map(({ regarding }) => regarding?.kind));
    return about.has('Pod') && about.has('StaticEgressIP');
  });
  expect(await app.stop()).toBe(0);
  await killAll();
  expect(app.log.filter((line) => JSON.stringify(line).includes('"status":403'))).toEqual([]);
});

test('whatever roles of the cluster allow, policies refuse what is not theirs', async () => {
  await grantEverything([
    [controller, controllerMayNot[0]![1]],
    [agent, agentMay[0]![1]],
  ]);
  const answers = (cluster: Cluster, rows: readonly (readonly [what: string, write: Write, ...rest: string[]])[]) =>
    Promise.all(rows.map(async ([what, write]) => [what, await answerTo(cluster, write)]));
  expect(await answers(controller, controllerMayNot)).toEqual(
    controllerMayNot.map(([what, , refusal]) => [what, refused(refusal)]),
  );
  expect(await answers(agent, agentMayNot)).toEqual(agentMayNot.map(([what, , refusal]) => [what, refused(refusal)]));
  expect(await answers(controller, controllerMay)).toEqual(controllerMay.map(([what]) => [what, 'taken']));
  expect(await answers(agent, agentMay)).toEqual(agentMay.map(([what]) => [what, 'taken']));
});

test('an agent whose token names no node reports nothing', async () => {
  const nobody = openCluster({ kubeconfig: await kubeconfigOf(api, 'node-dataplane') });
  expect(await answerTo(nobody, agentMay[0]![1])).toEqual(refused('may write the status only of EgressNodeSlices'));
  nobody.close();
});

test('others are not affected: they write rules and slices', async () => {
  for (const [, write] of [...controllerMayNot.slice(0, 3), ...agentMayNot])
    expect(await answerTo(api.cluster, write)).toBe('taken');
});
