import { silentLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import { answerRequest } from './cni-commands.ts';
import type { ResultAddition } from './hook.port.ts';
import { hookedPods } from './hooks.ts';

const prevResult = { interfaces: [{ name: 'eth0', sandbox: '/run/netns/p' }] };
const request = {
  environment: { CNI_COMMAND: 'ADD', CNI_CONTAINERID: 'c', CNI_IFNAME: 'eth0', CNI_NETNS: '/run/netns/p' },
  config: JSON.stringify({ cniVersion: '1.0.0', prevResult }),
};

/** What hooks see of the annotations, where the API server has others. */
const annotationsAt = async (runtimeConfig: unknown): Promise<unknown> => {
  let seen: unknown;
  const pods = hookedPods({
    hooks: [{ section: 's', order: 1, timeoutMs: 1000, unavailable: 'refuse' }],
    ports: { attach: async () => {}, detach: async () => {}, check: async () => undefined },
    registered: () => [],
    metadataOf: async () => ({ labels: {}, annotations: { of: 'the API server' } }),
    logger: silentLogger,
  });
  pods.handle('s', {
    add: async (pod) => {
      seen = await pod.annotations();
    },
  });
  const config = JSON.stringify({ cniVersion: '1.0.0', prevResult, runtimeConfig });
  const { exitCode } = await answerRequest({ ...request, config }, { pods, gate: { isOpen: true } });
  expect(exitCode).toBe(0);
  return seen;
};

/** The answer to ADD where a section adds each of these. */
const add = async (...additions: readonly ResultAddition[]) => {
  const names = additions.map((_, order) => `s${order}`);
  const pods = hookedPods({
    hooks: names.map((section, order) => ({ section, order, timeoutMs: 1000, unavailable: 'refuse' })),
    ports: { attach: async () => {}, detach: async () => {}, check: async () => undefined },
    registered: () => [],
    metadataOf: async () => ({ labels: {}, annotations: {} }),
    logger: silentLogger,
  });
  for (const [order, section] of names.entries()) pods.handle(section, { add: async () => additions[order]! });
  return await answerRequest(request, { pods, gate: { isOpen: true } });
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

const TOLD = 'io.kubernetes.cri.pod-annotations';

test.each<[string, unknown]>([
  ['annotations', { [TOLD]: { a: 'b', c: '' } }],
  ['that there are none', { [TOLD]: {} }],
])('hooks believe a runtime that tells %s', async (_, runtimeConfig) => {
  expect(await annotationsAt(runtimeConfig)).toEqual((runtimeConfig as { [TOLD]: object })[TOLD]);
});

test.each<[string, unknown]>([
  ['no runtimeConfig', undefined],
  ['null for it', null],
  ['a runtimeConfig without them', { mac: '02:00:00:00:00:01' }],
  ['null', { [TOLD]: null }],
  ['a text', { [TOLD]: 'a=b' }],
  ['a list', { [TOLD]: ['a'] }],
  ['a value that is no text', { [TOLD]: { a: 'b', c: 1 } }],
])('of a runtime that tells %s nothing is believed, and the API server is asked', async (_, runtimeConfig) => {
  expect(await annotationsAt(runtimeConfig)).toEqual({ of: 'the API server' });
});
