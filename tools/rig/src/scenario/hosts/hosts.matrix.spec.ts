import { setTimeout as delay } from 'node:timers/promises';
import { VERSION } from '@unbounded/oci/unbounded';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stopAgent } from '../../apps/agents.ts';
import { agentReady } from '../../apps/agent-state.ts';
import { applyChart, restartPods } from '../../apps/chart.ts';
import { NAMESPACE } from '../../apps/tokens.ts';
import { verify } from '../../cli/verify.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { layoutOf } from '../../layout/layout.ts';
import type { LabOptions } from '../../layout/options.ts';
import { startAgent } from '../../substrate/agents.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { flowDuring, killAgent, nodeCondition, podOn, timeUntil } from '../scenario.ts';
import { docker, savedRules, ufw } from './firewalls.ts';

/** Nodes with firewalls of their own that drop what is forwarded: everything reaches everything, as without them. */

const OPENED_WITHIN_MS = 10_000;

describe.each<Partial<LabOptions>>([
  { workers: 1, gateways: 2 },
  { workers: 1, ip: 'dual', dataplane: 'netlink' },
  { workers: 1, ip: 'dual', agents: 'pods' },
])('%o', (options) => {
  const layout = layoutOf(options);
  const { agents } = layout.options;
  const firewalls = [docker, ufw(layout)] as const;
  const [worker, gateway, ...others] = [
    's1-w1',
    's2-g1',
    ...layout.nodes.map(({ name }) => name).filter((name) => name !== 's1-w1' && name !== 's2-g1'),
  ] as const;
  const all = [worker, gateway, ...others];

  const asProcesses = agents === 'process' ? [worker] : [];

  const isOpen = (node: string): boolean => {
    const rules = savedRules(node);
    const refusing = [...rules.matchAll(/^:(FORWARD|INPUT) DROP/gm)].length;
    return [...rules.matchAll(/^-A (FORWARD|INPUT) .*unbounded/gm)].length === refusing;
  };
  const opened = (node: string): Promise<number> => timeUntil(`${node} is open`, () => isOpen(node), OPENED_WITHIN_MS);
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

  test('Docker on a worker', { timeout: 240_000 }, async () => {
    docker.begin(worker);
    await opened(worker);
    await delay(1000); // the marks come with connectivity's next pass
    expect(await verify(layout)).toBe(true);
  });

  test('ufw on a gateway', { timeout: 240_000 }, async () => {
    firewalls[1].begin(gateway);
    await opened(gateway);
    await delay(1000);
    expect(await verify(layout)).toBe(true);
    expect(await nodeCondition(layout, gateway, 'UnboundedNetworkDegraded')).toMatchObject({ status: 'False' });
  });

  test('one of them on every node', { timeout: 240_000 }, async () => {
    for (const [index, node] of others.entries()) firewalls[index % 2]!.begin(node);
    for (const node of others) await opened(node);
    await delay(1000);
    expect(await verify(layout)).toBe(true);
  });

  test.each(
    firewalls.flatMap(({ name, disturbances }) =>
      Object.entries(disturbances).map(([what, act]) => [what, name, act] as const),
    ),
  )('%s of %s: our rule is back at once', { timeout: 120_000 }, async (what, name, act) => {
    const node = name === 'ufw' ? gateway : worker;
    const { largestGapMillis, lost } = await flowDuring({ ...(await across()), seconds: 20 }, async () => {
      act(node);
      await opened(node);
    });
    console.log(`${name}, ${what}: ${lost} lost, longest gap ${largestGapMillis.toFixed(0)} ms`);
    expect(isOpen(node)).toBe(true);
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
      const node = layout.nodes.find(({ name }) => name === worker)!;
      await stopAgent(worker, 'node-dataplane', 'SIGTERM');
      docker.disturbances['a flush of all rules']!(worker);
      docker.begin(worker);
      expect(isOpen(worker)).toBe(false);
      await startAgent(layout, node, 'node-dataplane');
      await timeUntil('the agent is ready', () => agentReady(worker), 30_000);
      await opened(worker);
      expect(await verify(layout)).toBe(true);
    },
  );

  test.each(asProcesses)(
    '%s, which is only to report, says which chain drops, and takes its rule away',
    { timeout: 120_000 },
    async () => {
      await restartAgent(worker, { UNBOUNDED_HOST_FIREWALL: 'Report' });
      await timeUntil(
        'the condition',
        async () => {
          const { message } = (await nodeCondition(layout, worker, 'UnboundedNetworkDegraded'))!;
          return /chain FORWARD of iptables \(nf_tables\) may drop packets of the overlay: policy DROP/.test(message);
        },
        20_000,
      );
      expect(savedRules(worker)).not.toContain('unbounded');
      await restartAgent(worker);
      await opened(worker);
    },
  );

  test.each(agents === 'pods' ? [all] : [])(
    'a clean-up by the chart leaves the firewalls of %s and all others as they were',
    { timeout: 120_000 },
    async () => {
      const before = new Map(all.map((node) => [node, savedRules(node)]));
      const values = { 'node-dataplane': { cleanup: true, maxUnavailable: '100%' }, 'node-keeper': { enabled: false } };
      await applyChart(layout, VERSION, { values });
      await kubectl(layout, ['rollout', 'status', 'daemonset/node-dataplane', '-n', NAMESPACE, '--timeout=90s']);
      for (const [node, rules] of before) {
        expect(rules, node).toContain('unbounded');
        expect(savedRules(node), node).toBe(rules.replaceAll(/^-A (FORWARD|INPUT) .*unbounded: belongs.*\n/gm, ''));
      }
    },
  );
});
