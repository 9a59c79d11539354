import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { VERSION } from '@unbounded/oci/unbounded';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentsOnDelete } from '../../apps/agents-on-delete.ts';
import { applyChart, type Installation, restartPods, waitForPodsOf } from '../../apps/chart.ts';
import { layoutOf } from '../../layout/layout.ts';
import { createViewer, type Viewer } from '../../status/viewer.ts';
import { down } from '../../substrate/down.ts';
import { upFormer } from '../former-version.ts';
import { timeUntil } from '../scenario.ts';

/**
 * Agents and aggregators of this version and of an earlier one, both ways round, with two replicas that share by Redis: no node is ever
 * without a report. UNBOUNDED_UPGRADE_FROM names another commit.
 */

/** The last one before paths had the time since when they are what they are. */
const UPGRADE_FROM = process.env['UNBOUNDED_UPGRADE_FROM'] ?? 'a920c9a2d625720003631cf5d73f77ce26e7f3f5';

const layout = layoutOf({ agents: 'pods', redis: true, workers: 1 });
const folder = mkdtempSync(join(tmpdir(), 'unbounded-lab-'));
let former: Installation;
let viewer: Viewer;

beforeAll(async () => {
  former = await upFormer(layout, UPGRADE_FROM);
  viewer = await createViewer(layout);
  await timeUntil('all nodes report', async () => (await gapIn()) === undefined, 60_000);
}, 500_000);
afterAll(async () => {
  await down();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

/** Nodes that the view knows by anything else than their reports. */
const gapIn = async (): Promise<string | undefined> => {
  const view = await viewer.view().catch(() => undefined);
  if (!view) return 'no view';
  const missing = layout.nodes.filter(({ name }) => view.nodes[name]?.source !== 'report');
  return missing.length === 0 ? undefined : missing.map(({ name }) => name).join(', ');
};

const LOOK_MS = 500;
/** One connection may go to a replica that has just ended: kube-proxy is told a moment later. */
const SHORTEST_GAP_MS = 3000;

/** What was missing from the view for more than a moment while something happens. */
const gapsDuring = async (disturb: () => Promise<void>): Promise<string[]> => {
  const gaps: string[] = [];
  let isOver = false;
  const watch = async (): Promise<void> => {
    for (let since: number | undefined; !isOver; await delay(LOOK_MS)) {
      const gap = await gapIn();
      since = gap === undefined ? undefined : (since ?? performance.now());
      if (since !== undefined && performance.now() - since > SHORTEST_GAP_MS) gaps.push(gap!);
    }
  };
  const watching = watch();
  await disturb();
  // Longer than a report counts: what no longer arrives is missing by then.
  await delay(30_000);
  isOver = true;
  await watching;
  return [...new Set(gaps)];
};

const aggregatorsAre = (version: Installation['version']): Promise<void> =>
  waitForPodsOf(layout, { app: 'status-aggregator', count: 2, version });

test('agents of before report to aggregators of this version', { timeout: 400_000 }, async () => {
  const gaps = await gapsDuring(async () => {
    await applyChart(layout, VERSION, { postRenderer: agentsOnDelete(folder) });
    await aggregatorsAre(VERSION);
  });
  expect(gaps).toEqual([]);
});

test('agents of this version follow, one by one', { timeout: 400_000 }, async () => {
  const gaps = await gapsDuring(async () => {
    for (const { name } of layout.nodes) await restartPods(layout, 'node-dataplane', name);
  });
  expect(gaps).toEqual([]);
});

test('agents of this version report to aggregators of before', { timeout: 400_000 }, async () => {
  const gaps = await gapsDuring(async () => {
    await applyChart(layout, former.version, { chart: former.chartFolder, postRenderer: agentsOnDelete(folder) });
    await aggregatorsAre(former.version);
  });
  expect(gaps).toEqual([]);
});
