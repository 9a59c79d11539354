import { setTimeout as delay } from 'node:timers/promises';
import { type Mesh, MESH_NAME } from '@unbounded/crds';
import { readConfig } from '@unbounded/config';
import type { Cluster } from '@unbounded/kube';
import { TAILNET_SOCKET } from '@unbounded/tailnet-cni';
import { silentLogger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { agentOptions } from '../agent.config.ts';
import { sectionsOf } from '../agent/sections.ts';
import type { Section, SectionContext, VersionedPlan } from '../section.port.ts';
import { tailnetSection } from './section.ts';
import { addedPod, annotated, podOf, socketPath, startTailnetAgent } from './tailnet-agent.testdata.ts';

const config = (...argv: readonly string[]) =>
  readConfig(agentOptions, { argv: ['--node-name', 'n1', ...argv], env: {} });
const namesWith = (...argv: readonly string[]) => sectionsOf(config(...argv)).map(({ name }) => name);

test('without the option the agent has the sections that it had, and with it one after those of networks', () => {
  const all = ['--egress', 'On', '--l2', 'On'];
  expect(namesWith()).toEqual(['hostfirewall', 'connectivity']);
  expect(namesWith(...all)).toEqual(['hostfirewall', 'egress', 'connectivity', 'l2']);
  expect(namesWith(...all, '--tailnet=true')).toEqual(['hostfirewall', 'egress', 'connectivity', 'l2', 'tailnet']);
  const orders = sectionsOf(config(...all, '--tailnet=true')).flatMap(({ hook }) => (hook ? [hook.order] : []));
  expect(orders.at(-1)).toBe(Math.max(...orders));
});

test('the tailnet agent is looked for where it listens', () => {
  expect(config().tailnetSocket).toBe(TAILNET_SOCKET);
});

test('only the pod’s own interface is its concern', () => {
  const { concerns } = tailnetSection(config()).hook!;
  expect([
    concerns!(podOf('web')),
    concerns!({ ...podOf('web'), joins: { configuration: 'lan', network: 'lan' } }),
  ]).toEqual([true, false]);
});

type Rule = NonNullable<Mesh['spec']['tailnet']>['rules'][number];
const meshWith = (join?: Rule['join']): Mesh => {
  const rules = join && [{ namespaceSelector: {}, join }];
  return { metadata: { name: MESH_NAME }, spec: rules ? { tailnet: { rules } } : {} } as unknown as Mesh;
};

let path: string;
let meshes: readonly Mesh[] | undefined;
let kept: VersionedPlan | undefined;
let section: Section | undefined;
let stop: (() => void) | undefined;
beforeEach(() => {
  path = socketPath();
  [meshes, kept, section, stop] = [undefined, undefined, undefined, undefined];
});
afterEach(async () => {
  await section?.stop();
  stop?.();
});

const cluster = {
  client: () => ({
    get: async (name: string) => ({
      metadata: { uid: `uid-${name}`, annotations: annotated(name === 'web' ? 'true' : undefined) },
    }),
  }),
} as unknown as Cluster;

const open = async (): Promise<Section> => {
  section = await tailnetSection({ tailnetSocket: path }).open({
    ...{ cluster, logger: silentLogger, trigger: () => undefined },
    attachment: { pods: { list: () => [podOf('web'), podOf('plain')] } },
    openInputs: () => ({ snapshot: () => meshes && { objects: { meshes } } }),
    kept: { read: () => kept, write: (plan: VersionedPlan) => void (kept = plan) },
  } as unknown as SectionContext);
  return section;
};
const start = async () => {
  const agent = await startTailnetAgent(path);
  stop = agent.stop;
  return agent;
};

test('nothing is asked or said without a tailnet', async () => {
  const { calls } = await start();
  meshes = [meshWith()];
  const { nextPassMs, report } = await (await open()).pass();
  expect([nextPassMs, report, calls]).toEqual([60_000, { problems: [] }, []]);
});

test('a rule that comes up gives running pods their devices', async () => {
  const { calls, known } = await start();
  const opened = await open();
  await opened.pass();
  meshes = [meshWith('OnRequest')];
  const { report } = await opened.pass();
  expect(report.conditions).toMatchObject([{ type: 'UnboundedTailnet', status: 'True' }]);
  await until('it is added', () => known.has('web'));
  expect(calls).toEqual(['check web', 'add web']);
  meshes = [meshWith('UnlessDeclined')];
  await opened.pass();
  await until('the other, too', () => known.has('plain'));
});

test('until the Mesh is read, rules are those that the agent before had', async () => {
  const { requests } = await start();
  meshes = [meshWith('UnlessDeclined')];
  await (await open()).pass();
  await section!.stop();
  meshes = undefined;
  await (
    await open()
  ).hook!.add!(addedPod('other', undefined), new AbortController().signal);
  expect(requests.map(({ podName }) => podName)).toContain('other');
});

test('a tailnet agent that is away while a pod waits for it is told with a remedy', async () => {
  meshes = [meshWith('OnRequest')];
  const opened = await open();
  const ending = new AbortController();
  const added = opened.hook!.add!(addedPod('web', 'true'), ending.signal);
  added.catch(() => undefined);
  await delay(10); // it waits
  const { nextPassMs, report } = await opened.pass();
  expect(nextPassMs).toBe(5000);
  expect(report.conditions).toMatchObject([
    { status: 'False', reason: 'TailnetAgentUnavailable', message: expect.stringContaining('DaemonSet tailnet') },
  ]);
  ending.abort();
  await expect(added).rejects.toThrow('does not answer');
});
