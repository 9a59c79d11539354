import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { formerTree } from '@unbounded/oci/former-tree';
import { NAMESPACE } from '@unbounded/testing/chart';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentsOnDelete } from '../../apps/agents-on-delete.ts';
import {
  applyChart,
  CURRENT,
  type Installation,
  importImage,
  podsOf,
  restartPods,
  rollbackPods,
  waitForChart,
} from '../../apps/chart.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { layoutOf } from '../../layout/layout.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { dropsAt, dropsSince, placesOf } from '../drops.ts';
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
  former = formerTree(UPGRADE_FROM);
  await down();
  await up(layout, former);
  await importImage(layout, CURRENT.imageFile);
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
  const flows = await Promise.all([startFlow(one.pod, { ip: other.ipv4 }), startFlow(other.pod, { ip: one.ipv4 })]);
  const before = dropsAt(placesOf(layout));
  const beganMs = performance.now();
  const phases: string[] = [];
  await act((phase) => void phases.push(`${Math.round(performance.now() - beganMs)} ms: ${phase}`));
  const reports = await Promise.all(flows.map((flow) => flow.end()));
  console.log(reports.map(({ sent, lost }) => `${lost} of ${sent} lost`).join('; '));
  const dropped = dropsSince(before, dropsAt(placesOf(layout)));
  return reports.flatMap(({ lost, losses }) =>
    lost === 0 ? [] : [`${lost} lost: ${JSON.stringify(losses)}; ${phases.join('; ')}; dropped meanwhile: ${dropped}`],
  );
};

const versionOn = async (node: string): Promise<string | undefined> =>
  (await podsOf(layout, 'node-dataplane'))
    .find(({ spec }) => spec.nodeName === node)
    ?.spec.containers[0]?.image.split(':')[1];

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
