import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NAMESPACE } from '@unbounded/testing/chart';
import { kubectl } from './control-plane.ts';
import { stopDaemon } from './daemon.ts';
import { down } from './down.ts';
import { layoutOf } from './layout.ts';
import { RELAY_DAEMON, relayChecks } from './relay.ts';
import { type FlowReport, flowDuring, podOn, timeUntil } from './scenario.ts';
import { up } from './up.ts';
import { verify } from './verify.ts';

/**
 * The relay in the cluster, of sites that block UDP: nodes find it from outside, by each kind of address that it may have. One
 * lab of pods serves all tests of this file, in this order.
 */

const layout = layoutOf({ workers: 1, agents: 'pods', blockUdp: 'all' });

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
const rolledOut = (): Promise<string> =>
  kubectl(layout, ['rollout', 'status', '-n', NAMESPACE, 'deployment/relay', '--timeout=120s']);

/** Whether every node that needs a relay is connected to one. */
const isFound = (): boolean => relayChecks(layout).every(({ ok }) => ok);

const flow = async (seconds: number, disturb: () => Promise<void>): Promise<FlowReport> => {
  const ends = { from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1'), seconds };
  return await flowDuring(ends, disturb);
};

test(
  'without a relay sites that block UDP are apart, and a managed one is found by a node port',
  { timeout: 300_000 },
  async () => {
    await stopDaemon(RELAY_DAEMON, 0);
    await timeUntil('no node has a relay', () => relayChecks(layout).every(({ ok }) => !ok), 20_000);
    await ask({ replicas: 1, serviceType: 'NodePort' });
    await timeUntil(
      'the Deployment is there',
      async () => (await kubectl(layout, ['get', 'deployments', '-n', NAMESPACE, '-o', 'name'])).includes('/relay'),
      30_000,
    );
    await rolledOut();
    console.log(`found after ${await timeUntil('every node has a relay', isFound, FOUND_MS)} ms`);
    expect(await verify(layout)).toBe(true);
  },
);

test('replicas come and go under traffic', { timeout: 300_000 }, async () => {
  const { largestGapMillis } = await flow(100, async () => {
    for (const replicas of [3, 1]) {
      await ask({ replicas });
      await rolledOut();
      await delay(15_000);
    }
  });
  console.log(`without traffic for ${largestGapMillis} ms`);
  expect(largestGapMillis).toBeLessThan(1000);
});

test('a replica that is killed is replaced by another within a second', { timeout: 200_000 }, async () => {
  await ask({ replicas: 2 });
  await rolledOut();
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
