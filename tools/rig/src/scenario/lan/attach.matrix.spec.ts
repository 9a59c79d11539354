import type { NetworkEndpoint } from '@unbounded/crds';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stopAgent } from '../../apps/agents.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { layoutOf, namespaceOf } from '../../layout/layout.ts';
import { inNamespace, runAsync } from '../../machine/command.ts';
import { inNode } from '../../node/node.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { withoutApiServer } from '../restarts.ts';
import { timeUntil, tryInPod } from '../scenario.ts';
import { answersTo, endpointsOf, onLan } from './place.ts';
import { createPods } from './pods.ts';

/** Many pods join the LAN at once, pods end in every way that there is, and nothing of them is left. */

const layout = layoutOf({ workers: 2, lan: true });
const NODES = ['s1-g1', 's1-w1', 's1-w2', 's2-w1', 's2-w2'];
const PODS = 50;

beforeAll(async () => {
  await down();
  await up(layout);
}, 300_000);
afterAll(down, 60_000);

const joined = async (): Promise<readonly NetworkEndpoint[]> =>
  (await endpointsOf(layout)).filter(({ spec }) => !spec.pod.startsWith('probe-'));
const running = async (): Promise<number> => {
  const listed = await kubectl(layout, ['get', 'pods', '-l', 'joins=lan', '-o', 'jsonpath={.items[*].status.phase}']);
  return listed.split(' ').filter((phase) => phase === 'Running').length;
};
const entries = async (): Promise<number> =>
  (await kubectl(layout, ['get', 'fdbentries,neighbors', '-o', 'name'])).trim().split('\n').length;
const ports = async (node: string): Promise<number> =>
  Number(await runAsync([...inNamespace(namespaceOf(node)), 'sh', '-c', 'ls /sys/class/net | grep -c ^l2p || true']));
/** One MAC and an address of each family an endpoint, and nothing else. */
const onlyTheirs = async (): Promise<boolean> => (await entries()) === 3 * (await endpointsOf(layout)).length;

test(
  `${PODS} pods that start at once on five nodes get different addresses; when they go, all of it goes`,
  { timeout: 600_000 },
  async () => {
    const before = await Promise.all(NODES.map(ports));
    await createPods(
      layout,
      ...Array.from({ length: PODS }, (_, at) => ({ name: `join-${at}`, node: NODES[at % NODES.length]! })),
    );
    const took = await timeUntil('all of them run', async () => (await running()) === PODS, 240_000);
    const endpoints = await joined();
    console.log(`${PODS} pods run after ${took} ms`);
    expect(endpoints).toHaveLength(PODS);
    const all = await endpointsOf(layout);
    const addresses = all.flatMap(({ spec }) => spec.addresses);
    expect(addresses).toHaveLength(2 * all.length);
    expect(new Set(addresses).size).toBe(addresses.length);
    expect(new Set(all.map(({ spec }) => spec.mac)).size).toBe(all.length);
    expect(await onlyTheirs()).toBe(true);
    const { pod } = await onLan(layout, 's1-w1');
    for (const { spec } of endpoints) await answersTo(pod, spec.addresses[0]!);

    await kubectl(layout, ['delete', 'pods', '-l', 'joins=lan', '--force', '--grace-period=0', '--wait=false']);
    await timeUntil('no endpoint of theirs', async () => (await joined()).length === 0, 120_000);
    await timeUntil('no entry of theirs', onlyTheirs, 30_000);
    expect(await Promise.all(NODES.map(ports))).toEqual(before);
  },
);

test(
  'without the API server an ADD is refused with the code of what may be repeated',
  { timeout: 120_000 },
  async () => {
    const { pod } = await onLan(layout, 's1-w1');
    await runAsync([...inNode(pod.node), 'ip', 'netns', 'add', 'later']);
    const variables = {
      ...{ CNI_COMMAND: 'ADD', CNI_CONTAINERID: 'later', CNI_NETNS: '/run/netns/later', CNI_IFNAME: 'lan0' },
      CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=${pod.name};K8S_POD_UID=later`,
    };
    const words = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
    const config = { cniVersion: '1.0.0', name: 'lan', type: 'unbounded-cni', network: 'lan' };
    const before = await ports(pod.node);
    await withoutApiServer(layout, async () => {
      const program = [...inNode(pod.node), 'sh', '-c', '"$@" || true', 'sh', 'env', ...words];
      const answer = await runAsync([...program, '/opt/cni/bin/unbounded-cni'], { input: JSON.stringify(config) });
      expect(JSON.parse(answer)).toMatchObject({ code: 11 });
      expect(await ports(pod.node)).toBe(before);
    });
  },
);

test('a fixed address goes with its pod to another node', { timeout: 240_000 }, async () => {
  // Pools give random addresses.
  const taken = new Set((await endpointsOf(layout)).flatMap(({ spec }) => spec.addresses));
  const address = Array.from({ length: 200 }, (_, index) => `192.168.77.${index + 7}`).find((one) => !taken.has(one))!;
  const wish = JSON.stringify([{ network: 'lan', addresses: [address] }]);
  const { pod } = await onLan(layout, 's1-w2');
  for (const node of ['s2-w1', 's1-w1']) {
    await createPods(layout, { name: 'fixed', node, networks: wish });
    await timeUntil('it runs', async () => (await running()) === 1, 60_000);
    expect((await joined()).map(({ spec }) => [spec.node, spec.addresses[0]])).toEqual([[node, address]]);
    await answersTo(pod, address);
    await kubectl(layout, ['delete', 'pod', 'fixed', '--force', '--grace-period=0']);
  }
  await timeUntil('no endpoint of it', async () => (await joined()).length === 0, 60_000);
});

test('of a node that is deleted no endpoint and no entry is left', { timeout: 240_000 }, async () => {
  const gone = (await endpointsOf(layout)).find(({ spec }) => spec.node === 's2-w2');
  expect(gone).toBeDefined();
  for (const app of ['node-dataplane', 'node-keeper'] as const) await stopAgent('s2-w2', app, 'SIGKILL');
  await runAsync([...inNode('s2-w2'), 'pkill', '-x', 'kubelet']);
  await kubectl(layout, ['delete', 'node', 's2-w2']);
  await timeUntil(
    'no endpoint of the node',
    async () => (await endpointsOf(layout)).every(({ spec }) => spec.node !== 's2-w2'),
    90_000,
  );
  await timeUntil('no entry of the node', onlyTheirs, 30_000);
  const { pod } = await onLan(layout, 's1-w1');
  expect(tryInPod(pod, 'ping', '-c1', '-W1', gone!.spec.addresses[0]!)).toBeUndefined();
});
