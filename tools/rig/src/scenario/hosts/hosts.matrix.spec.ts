import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stopAgent } from '../../apps/agents.ts';
import { agentReady } from '../../apps/agent-state.ts';
import { cleanUpByChart, restartPods } from '../../apps/chart.ts';
import { verify } from '../../cli/verify.ts';
import { NODE_ECHO_PORT } from '../../checks/node-echo.ts';
import { PLANS } from '../../layout/addresses.ts';
import { layoutOf, namespaceOf, routerName, WAN } from '../../layout/layout.ts';
import type { LabOptions } from '../../layout/options.ts';
import { startAgent } from '../../substrate/agents.ts';
import { onNode } from '../../node/node.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { flowDuring, killAgent, nodeCondition, podOn, timeUntil } from '../scenario.ts';
import { makeStranger } from '../hostile/strangers.ts';
import { firewalld } from './firewalld.ts';
import { docker, type HostFirewall, ufw } from './firewalls.ts';
import { reach, type Target } from './reach.ts';

/** Nodes with firewalls of their own that drop what is forwarded: everything reaches everything, as without them. */

const OPENED_WITHIN_MS = 10_000;

/** kube-proxy names its chains by Services, also those of our namespace. */
const rulesBesideKubeProxy = (node: string): string =>
  onNode(node, 'nft', 'list', 'tables')
    .split('\n')
    .map((line) => line.trim().split(' ').slice(1))
    .filter(([, table]) => table !== undefined && table !== 'kube-proxy')
    .map((table) => onNode(node, 'nft', 'list', 'table', ...table))
    .join('\n');

interface Case {
  readonly options: Partial<LabOptions>;
  /** On a worker and on a gateway. */
  readonly on: readonly ['Docker' | 'ufw' | 'firewalld', 'Docker' | 'ufw' | 'firewalld'];
}

describe.each<Case>([
  { options: { workers: 1, gateways: 2 }, on: ['Docker', 'ufw'] },
  { options: { workers: 1, gateways: 2 }, on: ['firewalld', 'firewalld'] },
  { options: { workers: 1, ip: 'dual', dataplane: 'netlink' }, on: ['ufw', 'firewalld'] },
  { options: { workers: 1, ip: 'dual', agents: 'pods' }, on: ['firewalld', 'Docker'] },
])('$options, $on', ({ options, on }) => {
  const layout = layoutOf(options);
  const { agents } = layout.options;
  const all = [docker, ufw(layout), firewalld(layout)];
  const [ofWorker, ofGateway] = on.map((name) => all.find((firewall) => firewall.name === name)!) as [
    HostFirewall,
    HostFirewall,
  ];
  const [worker, gateway] = ['s1-w1', 's2-g1'] as const;
  // The control plane's own comes first: what it takes from other sites comes by NAT, so it refuses nothing that comes in.
  const others = layout.nodes.map(({ name }) => name).filter((name) => name !== worker && name !== gateway);
  const firewalls = new Map([
    [worker, ofWorker],
    [gateway, ofGateway],
    ...others.map((node, index) => [node, all[index % all.length]!] as const),
  ]);
  const nodeNamed = (name: string) => layout.nodes.find((node) => node.name === name)!;
  const firewallOf = (node: string): HostFirewall => firewalls.get(node)!;
  const asProcesses = agents === 'process' ? [worker] : [];

  const opened = (node: string): Promise<number> =>
    timeUntil(`${node} is open`, () => firewallOf(node).isOpen(node), OPENED_WITHIN_MS);
  const across = async () => ({ from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1') });
  const restartAgent = async (node: string, env: NodeJS.ProcessEnv = {}): Promise<void> => {
    if (agents === 'pods') return restartPods(layout, 'node-dataplane', node);
    await killAgent(layout, node, 'node-dataplane', env);
    await timeUntil(`the agent of ${node} is ready`, () => agentReady(node), 30_000);
  };

  beforeAll(async () => {
    await down();
    await up(layout);
  }, 300_000);
  afterAll(down, 60_000);

  test(`${on[0]} on a worker`, { timeout: 240_000 }, async () => {
    ofWorker.begin(worker);
    await opened(worker);
    await delay(1000); // the marks come with connectivity's next pass
    expect(await verify(layout)).toBe(true);
  });

  test(`${on[1]} on a gateway`, { timeout: 240_000 }, async () => {
    ofGateway.begin(gateway);
    await opened(gateway);
    await delay(1000);
    expect(await verify(layout)).toBe(true);
    expect(await nodeCondition(layout, gateway, 'UnboundedNetworkDegraded')).toMatchObject({ status: 'False' });
  });

  test('one of them on every node', { timeout: 240_000 }, async () => {
    for (const node of others) firewallOf(node).begin(node);
    for (const node of others) await opened(node);
    await delay(1000);
    expect(await verify(layout)).toBe(true);
  });

  test.each(
    [worker, gateway].flatMap((node) =>
      Object.entries(firewallOf(node).disturbances).map(
        ([what, act]) => [what, firewallOf(node).name, node, act] as const,
      ),
    ),
  )('%s of %s on %s: what lets us pass is back at once', { timeout: 120_000 }, async (what, name, node, act) => {
    // As many as tell a gap of that length: where WireGuard runs in user space, 1,000 a second take the processors that firewalld needs.
    const flow = { ...(await across()), seconds: 20, perSecond: 100 };
    const { largestGapMillis, lost } = await flowDuring(flow, async () => {
      act(node);
      await opened(node);
    });
    console.log(`${name}, ${what}: ${lost} lost, longest gap ${largestGapMillis.toFixed(0)} ms`);
    expect(firewallOf(node).isOpen(node)).toBe(true);
    expect(largestGapMillis).toBeLessThan(1000);
  });

  test('no datagram is lost while agents are restarted behind firewalls', { timeout: 240_000 }, async () => {
    const report = await flowDuring({ ...(await across()), seconds: 60 }, async () => {
      for (const node of [worker, gateway]) await restartAgent(node);
    });
    expect(report).toMatchObject({ sent: 60_000, received: 60_000 });
  });

  test.each(asProcesses)(
    'a firewall that comes on %s while the agent is away is opened when it is back',
    { timeout: 240_000 },
    async () => {
      const node = nodeNamed(worker);
      await stopAgent(worker, 'node-dataplane', 'SIGTERM');
      ofWorker.takeOurs(worker);
      expect(ofWorker.isOpen(worker)).toBe(false);
      await startAgent(layout, node, 'node-dataplane');
      await timeUntil('the agent is ready', () => agentReady(worker), 30_000);
      await opened(worker);
      expect(await verify(layout)).toBe(true);
    },
  );

  /** Strangers on the worker's LAN and on the WAN; the one on the LAN has the worker as its router to pods. */
  const plugStrangers = async () => {
    const [site] = layout.sites;
    const plan = PLANS[4];
    const onLan = makeStranger({
      name: 'stranger-lan',
      bridge: { namespace: namespaceOf(routerName(site!.name)), name: 'lan0' },
      address: `${plan.lanHost(1, 66)}/${plan.lanLength}`,
      gateway: nodeNamed(worker).internalIp,
    });
    const onWan = makeStranger({
      name: 'stranger-wan',
      bridge: { namespace: namespaceOf(WAN.name), name: 'wan0' },
      address: `${plan.wanHost(66)}/${plan.wanLength}`,
    });
    const pod = await podOn(layout, worker);
    const atNode = (host: string): Target[] => [
      ...[22, 9998, 10_250, 10_256].map((port) => ({ protocol: 'tcp', host, port }) as const),
      { protocol: 'udp', host, port: NODE_ECHO_PORT },
    ];
    const atPod: Target[] = [9000, 9001].flatMap((port) => [
      { protocol: 'tcp', host: pod.ip, port },
      { protocol: 'udp', host: pod.ip, port },
    ]);
    return async (): Promise<string[]> => [
      ...(await reach(onLan.name, [...atNode(nodeNamed(worker).internalIp), ...atPod])),
      ...(await reach(onWan.name, atNode(nodeNamed(gateway).external!.ip))),
    ];
  };

  test.each(asProcesses)(
    '%s, which is only to report, says what drops, and has nothing of ours; strangers reach no more with it',
    { timeout: 180_000 },
    async () => {
      const reachedByStrangers = await plugStrangers();
      for (const node of [worker, gateway]) await restartAgent(node, { UNBOUNDED_HOST_FIREWALL: 'Report' });
      await timeUntil(
        'the condition',
        async () => {
          const { message } = (await nodeCondition(layout, worker, 'UnboundedNetworkDegraded'))!;
          return ofWorker.reported.test(message);
        },
        20_000,
      );
      expect(ofWorker.saved(worker)).not.toContain('unbounded');
      const before = await reachedByStrangers();
      for (const node of [worker, gateway]) {
        await restartAgent(node);
        await opened(node);
      }
      await delay(1000);
      expect(await reachedByStrangers()).toEqual(before);
      console.log(before.join('; '));
    },
  );

  test.each(agents === 'pods' ? [{ nodes: [...firewalls.keys()] }] : [])(
    'a clean-up by the chart leaves the firewalls of $nodes as they were',
    { timeout: 120_000 },
    async ({ nodes }) => {
      const before = new Map(nodes.map((node) => [node, firewallOf(node).saved(node)]));
      await cleanUpByChart(layout);
      for (const [node, rules] of before) {
        const { saved, withoutOurs } = firewallOf(node);
        expect(rules, node).toContain('unbounded');
        expect(withoutOurs(saved(node)), node).toBe(withoutOurs(rules));
        expect(saved(node), node).not.toContain('unbounded');
        expect(rulesBesideKubeProxy(node), node).not.toContain('unbounded');
      }
    },
  );
});
