import { annotations } from '@unbounded/crds';
import { type Cluster, coreClients } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import {
  type ApiServer,
  borrowApiServer,
  createNode,
  installAccessRules,
  kubeconfigOf,
  publicKeyFor,
  resetCluster,
  until,
} from '@unbounded/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { NodeCondition } from '../section.port.ts';
import { createAgentEvents } from '../world/agent-events.ts';
import { createClusterReporter } from '../world/cluster-reporter.ts';
import { createNodeSource } from '../world/cluster-source.ts';
import { createReporting } from './reporting.ts';

/** What stands on the Node while sections come and go: with an agent's own rights, under the chart's policies. */

let api: ApiServer;
const ends: (() => unknown)[] = [];
beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
  await installAccessRules(api);
});
beforeEach(async () => {
  await resetCluster(api.cluster);
  await createNode(coreClients(api.cluster).nodes, { name: 'mine' });
});
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});
afterAll(() => api?.stop());

const TYPES = [{ name: 'connectivity', isEssential: true }, { name: 'example' }];
const failure = (name: string) => ({ reason: 'SectionFailed', message: `section ${name}: of the test` });
const condition = (type: string, message = ''): NodeCondition => ({ type, status: 'True', reason: 'Test', message });
const network = condition('NetworkUnavailable');
const relayed = condition('UnboundedRelayed');
const example = condition('UnboundedExample');

/** Sections of an agent process on the node, over the real reporter. */
const startAgent = async (types: readonly { readonly name: string; readonly isEssential?: boolean }[] = TYPES) => {
  const cluster: Cluster = openCluster({ kubeconfig: await kubeconfigOf(api, 'node-dataplane', 'mine') });
  const own = createNodeSource(cluster, 'mine', silentLogger);
  await until('the Node is known', () => own.node() !== undefined);
  const events = createAgentEvents(cluster, { logger: silentLogger, metrics: createMetrics() });
  const reporter = createClusterReporter({ cluster, nodeName: 'mine', node: () => own.node(), events });
  let taken = 0;
  const counted: typeof reporter = { report: (...given) => reporter.report(...given).then(() => void taken++) };
  const reporting = createReporting(types, { reporter: counted, logger: silentLogger });
  const stop = async (): Promise<void> => {
    await reporting.stop();
    await own.stop();
    cluster.close();
  };
  ends.push(stop);
  return {
    section: (name: string) => reporting.of(name, () => undefined),
    /** All that was submitted until now has been taken. */
    taken: async () => await until('the report is taken', () => taken > 0),
    stop,
  };
};
const standing = async () => {
  const { metadata, status } = await coreClients(api.cluster).nodes.get('mine');
  return { annotations: metadata.annotations ?? {}, conditions: status?.conditions ?? [] };
};
const typesOf = async (): Promise<readonly string[]> => (await standing()).conditions.map(({ type }) => type).sort();
const degraded = async () =>
  (await standing()).conditions.find(({ type }) => type === 'UnboundedNetworkDegraded')?.message ?? '';
const ANNOTATION = 'net.unbounded-cloud.io/tunnel-mtu';
const ALL = ['NetworkUnavailable', 'UnboundedExample', 'UnboundedNetworkDegraded', 'UnboundedRelayed'];

/** A former process, whose conditions stand. */
const leaveConditions = async (): Promise<void> => {
  const former = await startAgent();
  former.section('connectivity').submit({ problems: [], conditions: [network, relayed] });
  former.section('example').submit({ problems: [], conditions: [example] });
  await until('they stand', async () => (await typesOf()).length === ALL.length);
  await former.stop();
};

test('a first pass of connectivity that fails takes nothing off the Node, and is told in a condition and an Event', async () => {
  await leaveConditions();
  const before = await standing();
  const agent = await startAgent();
  agent.section('connectivity').fail(failure('connectivity'));
  await agent.taken();
  const { conditions, annotations } = await standing();
  expect(annotations).toEqual(before.annotations);
  const others = before.conditions.filter(({ type }) => type !== 'UnboundedNetworkDegraded');
  const degradedNow = { type: 'UnboundedNetworkDegraded', status: 'True', reason: 'SectionFailed' };
  expect(others).toHaveLength(3);
  expect(conditions).toEqual(expect.arrayContaining([...others, expect.objectContaining(degradedNow)]));
  expect(conditions).toHaveLength(4);
  await until('the Event', async () => {
    const { items } = await coreClients(api.cluster).events.list({ namespace: 'default' });
    return items.some(({ reason, note }) => reason === 'SectionFailed' && note?.includes('connectivity'));
  });
});

test('nothing that a section reports before connectivity is applied, and all of it afterwards', async () => {
  await leaveConditions();
  const before = await standing();
  const agent = await startAgent();
  const [connectivity, other] = [agent.section('connectivity'), agent.section('example')];
  other.submit({ problems: [], annotations: { [ANNOTATION]: '1400' }, conditions: [condition(example.type, 'new')] });
  await agent.taken();
  expect(await standing()).toEqual(before);
  connectivity.submit({ problems: [], conditions: [network, relayed] });
  await until('it is written', async () => (await standing()).annotations[ANNOTATION] === '1400');
  await until('and its condition', async () => (await standing()).conditions.some(({ message }) => message === 'new'));
  expect(await typesOf()).toEqual(ALL);
});

test('while a section cannot be opened its conditions stay and the failure is told; its first report decides', async () => {
  await leaveConditions();
  const agent = await startAgent();
  const [connectivity, other] = [agent.section('connectivity'), agent.section('example')];
  connectivity.submit({ problems: [], conditions: [network] });
  other.fail(failure('example'));
  await until('the failure is told', async () => (await degraded()) === failure('example').message);
  expect(await typesOf()).toEqual(ALL);
  other.submit({ problems: [] });
  await until('what nobody reports is gone', async () => (await typesOf()).length === 2);
  expect(await typesOf()).toEqual(['NetworkUnavailable', 'UnboundedNetworkDegraded']);
});

test('an agent without a section removes the condition that the section left, and not the one of site-membership', async () => {
  await leaveConditions();
  const accepted = { ...condition('UnboundedNodeAccepted'), lastTransitionTime: '2026-01-01T00:00:00Z' };
  const { nodes } = coreClients(api.cluster);
  const object = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'mine' }, status: { conditions: [accepted] } };
  await nodes.apply(object, { subresource: 'status', fieldManager: 'site-membership', force: true });
  const agent = await startAgent(TYPES.slice(0, 1));
  agent.section('connectivity').submit({ problems: [], conditions: [network] });
  await until('it is gone', async () => !(await typesOf()).includes('UnboundedExample'));
  expect(await typesOf()).toEqual(['NetworkUnavailable', 'UnboundedNetworkDegraded', 'UnboundedNodeAccepted']);
});

test('an annotation that the chart does not know is a problem and an Event; conditions and all others are written', async () => {
  const agent = await startAgent();
  const later = { 'net.unbounded-cloud.io/of-a-later-version': 'x' };
  agent.section('example').submit({ problems: [], annotations: later });
  agent.section('connectivity').submit({
    problems: [{ reason: 'ForeignLink', message: 'a link named vxlan0' }],
    annotations: {
      [annotations.wireGuardPublicKey]: publicKeyFor('mine'),
      [annotations.wireGuardNextPublicKey]: publicKeyFor('next'),
      [annotations.wireGuardKeyGeneration]: '1',
      [ANNOTATION]: '1400',
    },
    conditions: [network, relayed],
  });
  await until('the refusal is told', async () => (await degraded()).includes('of-a-later-version'));
  expect(await degraded()).toMatch(/^a link named vxlan0; .*of-a-later-version of this Node: .*that it writes itself/);
  expect(await typesOf()).toEqual(['NetworkUnavailable', 'UnboundedNetworkDegraded', 'UnboundedRelayed']);
  expect((await standing()).annotations).toEqual({
    [annotations.wireGuardPublicKey]: publicKeyFor('mine'),
    [annotations.wireGuardNextPublicKey]: publicKeyFor('next'),
    [annotations.wireGuardKeyGeneration]: '1',
    [ANNOTATION]: '1400',
  });
  await until('the Event', async () => {
    const { items } = await coreClients(api.cluster).events.list({ namespace: 'default' });
    return items.some(({ reason }) => reason === 'AnnotationRefused');
  });
  agent.section('connectivity').submit({ problems: [], annotations: { [ANNOTATION]: '1380' }, conditions: [network] });
  await until('a later change is written too', async () => (await standing()).annotations[ANNOTATION] === '1380');
});

test('a condition of any length is written, cut to what the chart takes', async () => {
  const agent = await startAgent();
  const message = 'x'.repeat(60_000);
  agent.section('connectivity').submit({
    problems: [{ reason: 'ForeignLink', message }],
    conditions: [network, condition('UnboundedExample', message)],
  });
  await until('it is told', async () => (await degraded()) !== '');
  const ours = (await standing()).conditions.filter(({ type }) => type.startsWith('Unbounded'));
  expect(ours.map(({ message: written }) => written?.length)).toEqual(ours.map(() => 4096));
  expect(ours.length).toBeGreaterThanOrEqual(2);
});

test('a write that is forbidden is a problem on the Node, beside all that others report', async () => {
  const agent = await startAgent();
  const [connectivity, other] = [agent.section('connectivity'), agent.section('example')];
  const forbidden = openCluster({ kubeconfig: await kubeconfigOf(api, 'node-dataplane', 'mine') });
  ends.push(() => forbidden.close());
  const write = (): Promise<void> => coreClients(forbidden).nodes.delete('mine');
  other.submit({ problems: [], write });
  connectivity.submit({ problems: [], annotations: { [ANNOTATION]: '1400' }, conditions: [network] });
  await until('the problem is told', async () => /^section example: .*forbidden/.test(await degraded()));
  expect((await standing()).annotations).toMatchObject({ [ANNOTATION]: '1400' });
});
