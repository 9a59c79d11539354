import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { V8_OPTIONS } from '@unbounded/config/node-command';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { restartPods } from '../apps/chart.ts';
import { verify } from '../cli/verify.ts';
import { layoutOf } from '../layout/layout.ts';
import type { LabOptions } from '../layout/options.ts';
import { down } from '../substrate/down.ts';
import { up } from '../substrate/up.ts';
import { allHealthy, busiestGateway, powerOff, setProbing } from './outages.ts';
import { type FlowReport, machineState, podOn, startFlow } from './scenario.ts';
import { captureWan } from './wan-capture.ts';

/** What the network promises, a test each, on one lab: our programs as pods of our image, installed by our chart. */

/** Two at a time: a worker of one site and a gateway of the other, both in the way of the flow. */
const RESTARTED = [
  ['s1-w1', 's2-g1'],
  ['s1-g1', 's2-w1'],
] as const;
/** So that what the last disturbance did is in the flow, too. */
const AFTERWARDS_MS = 2000;
/** So long that a flow that waits for the end of it is told from one that was switched. */
const OUTAGE_MS = 6000;
/** In a second: who starves for less is not left, or the flow would not be where the outage is. */
const PROBE_INTERVAL_MS = 100;
const LOST_PROBES = 10;

/** Of all processes that are there. */
const commandLines = (): string[][] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')];
      } catch {
        return []; // it ended meanwhile
      }
    });

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

  /** Numbered datagrams across the sites, a thousand a second, for as long as `disturb` takes and a little longer. */
  const flowAcross = async (disturb: () => Promise<void>): Promise<FlowReport> => {
    const flow = await startFlow(await podOn(layout, 's1-w1'), await podOn(layout, 's2-w1'));
    await disturb();
    await delay(AFTERWARDS_MS);
    return flow.end();
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

  test('every program of ours runs with the options of V8 that keep threads from ending it', () => {
    const started = commandLines().filter(([program]) => program === '/usr/bin/node');
    expect(started.length).toBeGreaterThan(2 * layout.nodes.length); // an agent and a keeper on each, and the controllers
    expect(started.filter((argv) => !V8_OPTIONS.every((option) => argv.includes(option)))).toEqual([]);
  });

  test('no datagram is lost while agents of gateways and workers are deleted', { timeout: 240_000 }, async () => {
    const { sent, received } = await flowAcross(async () => {
      for (const nodes of RESTARTED)
        await Promise.all(nodes.map((node) => restartPods(layout, 'node-dataplane', node)));
    });
    expect(sent).toBeGreaterThan(RESTARTED.flat().length * 1000);
    expect(received).toBe(sent);
  });

  test('traffic goes on by the other gateway when the one in use is off', { timeout: 120_000 }, async () => {
    await setProbing(layout, PROBE_INTERVAL_MS, LOST_PROBES);
    await allHealthy(layout, 60_000);
    const report = await flowAcross(async () => {
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
