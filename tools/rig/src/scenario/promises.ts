import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { restartPods } from '../apps/chart.ts';
import { verify } from '../cli/verify.ts';
import { layoutOf } from '../layout/layout.ts';
import type { LabOptions } from '../layout/options.ts';
import { down } from '../substrate/down.ts';
import { up } from '../substrate/up.ts';
import { allHealthy, busiestGateway, powerOff, setProbing } from './outages.ts';
import { type FlowReport, flowDuring, machineState, podOn } from './scenario.ts';
import { captureWan } from './wan-capture.ts';

/** What the network promises, a test each, on one lab: our programs as pods of our image, installed by our chart. */

const RESTARTED = ['s1-w1', 's1-g1', 's2-g1', 's2-w1'] as const;
const RESTART_SECONDS = 25;
/** So long that a flow that waits for the end of it is told from one that was switched. */
const OUTAGE_MS = 6000;
const PROBE_INTERVAL_MS = 100;
const LOST_PROBES = 3;

export const describePromises = (options: Partial<LabOptions>): void => {
  const layout = layoutOf({ gateways: 2, workers: 1, agents: 'pods', ...options });
  const gateways = layout.nodes.filter(({ role, site }) => role === 'gateway' && site === 's1');
  const work = mkdtempSync(join(tmpdir(), 'unbounded-lab-'));
  let before: Record<string, string[]>;

  beforeAll(async () => {
    await down(); // what an interrupted run left
    before = machineState();
    await up(layout);
  }, 300_000);
  afterAll(async () => {
    await down();
    rmSync(work, { recursive: true, force: true });
  }, 60_000);

  /** Numbered datagrams across the sites during `disturb`, which must not outlast them. */
  const flowAcross = async (seconds: number, disturb: () => Promise<void>): Promise<FlowReport> => {
    const ends = { from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1'), seconds };
    let tookMs = Number.POSITIVE_INFINITY;
    const startedMs = performance.now();
    const report = await flowDuring(ends, async () => {
      await disturb();
      tookMs = performance.now() - startedMs;
    });
    expect(tookMs, 'what was to disturb the flow took longer than the flow').toBeLessThan(seconds * 1000);
    return report;
  };

  test('every pod reaches every pod, node and Service, and the outside world', { timeout: 180_000 }, async () => {
    expect(await verify(layout)).toBe(true);
  });

  test(
    'between the sites there is WireGuard, TLS to the API server, and nothing else',
    { timeout: 120_000 },
    async () => {
      const { wireGuard, ...others } = await captureWan(layout, join(work, 'wan.pcap'));
      expect(wireGuard).toBeGreaterThan(100);
      expect(others).toEqual({ others: [], inner: [], readable: 0 });
    },
  );

  test('no datagram is lost while agents of gateways and workers are deleted', { timeout: 240_000 }, async () => {
    const report = await flowAcross(RESTART_SECONDS, async () => {
      for (const node of RESTARTED) await restartPods(layout, 'node-dataplane', node);
    });
    expect(report).toMatchObject({ sent: RESTART_SECONDS * 1000, received: RESTART_SECONDS * 1000 });
  });

  test('traffic goes on by the other gateway when the one in use is off', { timeout: 120_000 }, async () => {
    await setProbing(layout, PROBE_INTERVAL_MS, LOST_PROBES);
    await allHealthy(layout, 60_000);
    const report = await flowAcross(16, async () => {
      const outage = powerOff(layout, await busiestGateway(gateways));
      outage.begin();
      await delay(OUTAGE_MS);
      outage.end();
    });
    expect(report.lost).toBeGreaterThan(0); // it was the one in use
    expect(report.largestGapMillis).toBeLessThan(OUTAGE_MS / 2);
  });

  test('down leaves the machine as it was before up', { timeout: 60_000 }, async () => {
    await down();
    expect(machineState()).toEqual(before);
  });
};
