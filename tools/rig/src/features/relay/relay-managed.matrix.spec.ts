import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NAMESPACE } from '@unbounded/testing/chart';
import { PLANS } from '../../layout/addresses.ts';
import { inNamespace, run } from '../../machine/command.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { stopDaemon } from '../../machine/daemon.ts';
import { down } from '../../substrate/down.ts';
import { layoutOf, namespaceOf, WAN } from '../../layout/layout.ts';
import { allHealthy } from '../../scenario/outages.ts';
import { RELAY_DAEMON, relayChecks } from './relay.ts';
import { type FlowReport, flowDuring, podOn, timeUntil } from '../../scenario/scenario.ts';
import { up } from '../../substrate/up.ts';
import { verify } from '../../cli/verify.ts';
import { onNode } from '../../node/node.ts';
import { RELAY_PORT } from '../../apps/relay-place.ts';

/**
 * The relay in the cluster, of sites that block UDP: nodes find it from outside, by each kind of address that it may have. One
 * lab of pods serves all tests of this file, in this order.
 */

// Two gateways in each site: by a node port there are as many relays as nodes that can be called.
const layout = layoutOf({ gateways: 2, workers: 1, agents: 'pods', blockUdp: 'all' });

beforeAll(async () => {
  await down();
  await up(layout);
}, 500_000);
afterAll(down, 60_000);

const FOUND_MS = 60_000;

const ask = async (managed: object): Promise<void> => {
  const patch = JSON.stringify({ spec: { relay: { provider: 'managed', managed } } });
  await kubectl(layout, ['patch', 'mesh', 'default', '--type=merge', '-p', patch]);
};
const ofRelay = (verb: string, ...more: string[]): Promise<string> =>
  kubectl(layout, [...verb.split(' '), '-n', NAMESPACE, 'deployment/relay', ...more]);

/** Until the Deployment is of the replicas that are asked for: it is rolled out as before until the controller has written it. */
const askFor = async (replicas: number, managed: object = {}): Promise<void> => {
  await ask({ ...managed, replicas });
  const wanted = async (): Promise<string> =>
    await ofRelay('get', '--ignore-not-found', '-o', 'jsonpath={.spec.replicas}');
  await timeUntil(`the Deployment wants ${replicas} replicas`, async () => (await wanted()) === `${replicas}`, 30_000);
  await ofRelay('rollout status', '--timeout=120s');
};

/** Whether every node that needs a relay is connected to one. */
const isFound = (): boolean => relayChecks(layout).every(({ ok }) => ok);

/** Everything reaches everything, once no path is about to change: a connection to a node's own address does not outlive that. */
const expectWhole = async (): Promise<void> => {
  await allHealthy(layout, 60_000);
  expect(await verify(layout)).toBe(true);
};

const flow = async (seconds: number, disturb: () => Promise<void>): Promise<FlowReport> => {
  const ends = { from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1'), seconds };
  return await flowDuring(ends, disturb);
};

interface RelayPod {
  readonly node: string;
  readonly ip: string;
}
const relayPods = async (): Promise<RelayPod[]> => {
  const args = ['get', 'pods', '-n', NAMESPACE, '-l', 'app.kubernetes.io/name=relay', '-o', 'json'];
  const { items } = JSON.parse(await kubectl(layout, args)) as {
    items: { metadata: { deletionTimestamp?: string }; spec: { nodeName: string }; status: { podIP: string } }[];
  };
  return items
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ spec, status }) => ({ node: spec.nodeName, ip: status.podIP }));
};
test(
  'without a relay sites that block UDP are apart, and a managed one is found by a node port',
  { timeout: 300_000 },
  async () => {
    await stopDaemon(RELAY_DAEMON, 0);
    await timeUntil('no node has a relay', () => relayChecks(layout).every(({ ok }) => !ok), 20_000);
    await askFor(1, { serviceType: 'NodePort' });
    console.log(`found after ${await timeUntil('every node has a relay', isFound, FOUND_MS)} ms`);
    await expectWhole();
  },
);

test('replicas come and go under traffic', { timeout: 300_000 }, async () => {
  const { largestGapMillis } = await flow(100, async () => {
    for (const replicas of [3, 1]) {
      await askFor(replicas);
      await delay(15_000);
      expect(await relayPods()).toHaveLength(replicas);
    }
  });
  console.log(`without traffic for ${largestGapMillis} ms`);
  expect(largestGapMillis).toBeLessThan(1000);
});

test('a replica that is killed is replaced by another within a second', { timeout: 200_000 }, async () => {
  await askFor(2);
  await delay(10_000);
  const { largestGapMillis } = await flow(30, async () => {
    for (const name of (
      await kubectl(layout, ['get', 'pods', '-n', NAMESPACE, '-l', 'app.kubernetes.io/name=relay', '-o', 'name'])
    )
      .trim()
      .split('\n')) {
      await kubectl(layout, ['delete', '-n', NAMESPACE, name, '--grace-period=0', '--force']);
      await delay(8000);
    }
  });
  console.log(`without traffic for ${largestGapMillis} ms`);
  expect(largestGapMillis).toBeLessThan(1000);
});

/** Nobody has a relay: what is found then is found without the mesh. */
const withoutRelay = async (): Promise<void> => {
  await ask({ replicas: 0 });
  await timeUntil('no node has a relay', () => relayChecks(layout).every(({ ok }) => !ok), 60_000);
};
const patchService = (patch: object, ...more: string[]): Promise<string> =>
  kubectl(layout, ['patch', 'service', 'relay', '-n', NAMESPACE, '--type=merge', '-p', JSON.stringify(patch), ...more]);

const externalOf = (name: string): string => layout.nodes.find((node) => node.name === name)!.external!.ip;

/** Where a node's connections to relays go, as its processes see it. */
const relaysOf = (node: string, port: number): string[] =>
  onNode(node, 'ss', '-Htn', 'state', 'established', 'dport', '=', `:${port}`)
    .split('\n')
    .flatMap((line) => line.trim().split(/\s+/).slice(3, 4))
    .map((peer) => peer.slice(0, peer.lastIndexOf(':')));

test(
  'a relay behind a load balancer is found by its address, which kube-proxy would lead over the mesh',
  { timeout: 300_000 },
  async () => {
    await withoutRelay();
    await askFor(1, { serviceType: 'LoadBalancer' });
    const [relay] = await relayPods();
    const service = JSON.parse(await kubectl(layout, ['get', 'service', 'relay', '-n', NAMESPACE, '-o', 'json'])) as {
      spec: { ports: { nodePort: number }[] };
    };
    // The balancer: an address of the outside world that leads to the node port where the relay runs.
    const balancer = PLANS[4].wanHost(250);
    const world = inNamespace(namespaceOf(WAN.worldName));
    run([...world, 'ip', 'addr', 'add', `${balancer}/32`, 'dev', 'eth0']);
    const target = `${externalOf(relay!.node)}:${service.spec.ports[0]!.nodePort}`;
    const input = `table ip balancer {
    chain in { type nat hook prerouting priority dstnat
      ip daddr ${balancer} tcp dport ${RELAY_PORT} dnat to ${target}
    }
    chain out { type nat hook postrouting priority srcnat
      ct status dnat masquerade
    }
  }`;
    run([...world, 'sysctl', '-qw', 'net.ipv4.ip_forward=1']);
    run([...world, 'nft', '-f', '-'], { input });
    await patchService({ status: { loadBalancer: { ingress: [{ ip: balancer }] } } }, '--subresource=status');
    const nodes = relayChecks(layout).map(({ from }) => from);
    const areThere = (): boolean => nodes.every((node) => relaysOf(node, RELAY_PORT).includes(balancer));
    await timeUntil('every node is connected to the balancer’s address', areThere, 90_000);
    await timeUntil('every node has a relay', isFound, FOUND_MS);
    await expectWhole();
  },
);

test('a relay at an external IP is found by it', { timeout: 300_000 }, async () => {
  await withoutRelay();
  await patchService({ status: { loadBalancer: null } }, '--subresource=status');
  // A gateway that has its external address on an interface of its own, where others have it at their router.
  const host = layout.nodes.find(({ external }) => external?.by === 'interface')!;
  const address = host.external!.ip;
  const others = layout.nodes.filter(({ name }) => name !== host.name).map(({ name }) => name);
  await kubectl(layout, ['cordon', ...others]);
  await patchService({ spec: { externalIPs: [address] } });
  await askFor(1);
  const [relay] = await relayPods();
  const nodes = relayChecks(layout)
    .map(({ from }) => from)
    .filter((node) => node !== host.name);
  const areThere = (): boolean => nodes.every((node) => relaysOf(node, RELAY_PORT).includes(address));
  await timeUntil('every other node is connected to the external IP', areThere, 90_000);
  const isOnSelf = (): boolean => relaysOf(host.name, RELAY_PORT).includes(relay!.ip);
  await timeUntil('the node of the relay is connected to it', isOnSelf, 60_000);
  await timeUntil('every node has a relay', isFound, FOUND_MS);
  await kubectl(layout, ['uncordon', ...others]);
  await expectWhole();
});
