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
