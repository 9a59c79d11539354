import { silentLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import { answerRequest } from './cni-commands.ts';
import type { HookHandlers, ResultAddition } from './hook.port.ts';
import { hookedPods } from './hooks.ts';
import type { CniRequest } from './request.codec.ts';

const prevResult = { interfaces: [{ name: 'eth0', sandbox: '/run/netns/p' }] };
const request = {
  environment: { CNI_COMMAND: 'ADD', CNI_CONTAINERID: 'c', CNI_IFNAME: 'eth0', CNI_NETNS: '/run/netns/p' },
  config: JSON.stringify({ cniVersion: '1.0.0', prevResult }),
};

/** The answer to ADD, with a section for each of these. */
const answerAdd = async (adds: readonly HookHandlers['add'][], { config }: Pick<CniRequest, 'config'> = request) => {
  const names = adds.map((_, order) => `s${order}`);
  const pods = hookedPods({
    hooks: names.map((section, order) => ({ section, order, timeoutMs: 1000, unavailable: 'refuse' })),
    ports: { attach: async () => {}, detach: async () => {}, check: async () => undefined },
    registered: () => [],
    annotationsOf: async () => ({ of: 'the API server' }),
    logger: silentLogger,
  });
  for (const [order, section] of names.entries()) pods.handle(section, { add: adds[order]! });
  return await answerRequest({ ...request, config }, { pods, gate: { isOpen: true } });
};

/** Where a section adds each of these. */
const add = (...additions: readonly ResultAddition[]) => answerAdd(additions.map((addition) => async () => addition));

/** What hooks see of the annotations, where the API server has others. */
const annotationsAt = async (runtimeConfig: unknown): Promise<unknown> => {
  let seen: unknown;
  const look: HookHandlers['add'] = async (pod) => {
    seen = await pod.annotations();
  };
  const config = JSON.stringify({ cniVersion: '1.0.0', prevResult, runtimeConfig });
  expect((await answerAdd([look], { config })).exitCode).toBe(0);
  return seen;
};

test('interfaces that several sections have put into a pod are all to be settled, and are no part of the result', async () => {
  const [net1, net2] = [
    { name: 'net1', addresses: ['192.0.2.7/24'] },
    { name: 'net2', addresses: [] },
  ];
  const { output, ...answer } = await add({ settle: [net1], interfaces: [{ name: 'net1' }] }, {}, { settle: [net2] });
  expect(answer).toEqual({ exitCode: 0, settle: [net1, net2] });
  expect(JSON.parse(output)).toEqual({
    cniVersion: '1.0.0',
    interfaces: [...prevResult.interfaces, { name: 'net1' }],
  });
});

test('where there are none, an answer is as it ever was', async () => {
  const result = `${JSON.stringify({ cniVersion: '1.0.0', ...prevResult })}\n`;
  expect(await add({}, { settle: [] })).toEqual({ exitCode: 0, output: result });
});

test('a result is of the version in which the configuration asks for it', async () => {
  const config = JSON.stringify({ cniVersion: '0.4.0', prevResult });
  const hook: HookHandlers['add'] = async () => ({ ips: [{ address: '192.0.2.7/24', interface: 0 }] });
  expect(JSON.parse((await answerAdd([hook], { config })).output)).toEqual({
    ...{ cniVersion: '0.4.0', ...prevResult },
    ips: [{ version: '4', address: '192.0.2.7/24', interface: 1 }],
  });
});

const CAPABILITY = 'io.kubernetes.cri.pod-annotations';

test.each<[string, unknown]>([
  ['annotations', { [CAPABILITY]: { a: 'b', c: '' } }],
  ['none', { [CAPABILITY]: {} }],
])('hooks get what the runtime passes: %s', async (_, runtimeConfig) => {
  expect(await annotationsAt(runtimeConfig)).toEqual((runtimeConfig as { [CAPABILITY]: object })[CAPABILITY]);
});

test.each<[string, unknown]>([
  ['no runtimeConfig', undefined],
  ['null for it', null],
  ['a runtimeConfig without them', { mac: '02:00:00:00:00:01' }],
  ['null', { [CAPABILITY]: null }],
  ['a text', { [CAPABILITY]: 'a=b' }],
  ['a list', { [CAPABILITY]: ['a'] }],
  ['a value that is no text', { [CAPABILITY]: { a: 'b', c: 1 } }],
])('where the runtime passes %s, annotations are those of the API server', async (_, runtimeConfig) => {
  expect(await annotationsAt(runtimeConfig)).toEqual({ of: 'the API server' });
});
