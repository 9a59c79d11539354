import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { NAMESPACE } from '@unbounded/testing/chart';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentsOnDelete } from '../../apps/agents-on-delete.ts';
import { applyChart, CURRENT, type Installation, restartPods, rollbackPods, waitForChart } from '../../apps/chart.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { layoutOf } from '../../layout/layout.ts';
import { down } from '../../substrate/down.ts';
import { agentVersions, lostOf, upFormer } from '../former-version.ts';
import { allHealthy } from '../outages.ts';
import { startFlow } from '../scenario.ts';
import { onLan, problemsOn } from './place.ts';

/** From an earlier version with Networks to this one and back, with agents of both beside each other. UNBOUNDED_UPGRADE_FROM names the commit. */

/** The last one whose frames took the stack alone: since then they go from a port straight into the tunnel. */
const UPGRADE_FROM = process.env['UNBOUNDED_UPGRADE_FROM'] ?? '6d64a527b229';
const SIDE_BY_SIDE_MS = 15_000;

const layout = layoutOf({ agents: 'pods', workers: 1, lan: true });
const folder = mkdtempSync(join(tmpdir(), 'unbounded-lab-'));
let former: Installation;

beforeAll(async () => {
  former = await upFormer(layout, UPGRADE_FROM);
  await allHealthy(layout, 60_000);
}, 600_000);
afterAll(async () => {
  await down();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

/**
 * What two flows of frames lose, one from each site to the other, while something happens. By IPv4: with the former version a pod's kernel
 * has no answer from an IPv6 neighbor that it asks itself, and gives it up every 40 s, with a packet.
 */
const lostDuring = async (act: (begins: (phase: string) => void) => Promise<void>): Promise<string[]> => {
  const [one, other] = [await onLan(layout, 's1-w1'), await onLan(layout, 's2-w1')];
  const [there, back] = await Promise.all([
    startFlow(one.pod, { ip: other.ipv4 }),
    startFlow(other.pod, { ip: one.ipv4 }),
  ]);
  return lostOf(
    layout,
    [
      { name: 's1-w1 - s2-w1', flow: there },
      { name: 's2-w1 - s1-w1', flow: back },
    ],
    act,
  );
};

const versionOn = async (node: string): Promise<string | undefined> => (await agentVersions(layout))[node];

test('the former version carries frames', { timeout: 60_000 }, async () => {
  expect(await versionOn('s1-w1')).toBe(former.version);
  expect(await problemsOn(layout)).toEqual([]);
});

test(
  'an agent of this version and one of the former exchange frames, by gateways of both',
  { timeout: 400_000 },
  async () => {
    const lost = await lostDuring(async (begins) => {
      begins('controllers');
      await applyChart(layout, CURRENT.version, { postRenderer: agentsOnDelete(folder) });
      for (const app of ['gateway-health', 'l2-networks'])
        await kubectl(layout, ['rollout', 'status', `deployment/${app}`, '-n', NAMESPACE, '--timeout=120s']);
      for (const node of ['s1-w1', 's2-g1']) {
        begins(`agent of ${node}`);
        await restartPods(layout, 'node-dataplane', node);
      }
      begins('side by side');
      await delay(SIDE_BY_SIDE_MS);
    });
    expect([await versionOn('s1-w1'), await versionOn('s2-w1')]).toEqual([CURRENT.version, former.version]);
    expect(lost).toEqual([]);
    expect(await problemsOn(layout)).toEqual([]);
  },
);

test('all agents of this version', { timeout: 400_000 }, async () => {
  const lost = await lostDuring(async () => {
    await applyChart(layout, CURRENT.version);
    await waitForChart(layout, CURRENT.version);
  });
  expect(lost).toEqual([]);
  expect(await problemsOn(layout)).toEqual([]);
});

test('back to the former version', { timeout: 400_000 }, async () => {
  const lost = await lostDuring(() => rollbackPods(layout, { version: former.version, revision: 1 }));
  expect(await versionOn('s1-w1')).toBe(former.version);
  expect(lost).toEqual([]);
  expect(await problemsOn(layout)).toEqual([]);
});
