import { basename, dirname, join } from 'node:path';
import { NEXT_VERSION, VERSION } from '@unbounded/oci/unbounded';
import { PIN_FOLDER } from '@unbounded/config/ownership';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { down } from '../substrate/down.ts';
import { layoutOf } from '../layout/layout.ts';
import { checkout, nodeJs } from '../machine/paths.ts';
import { cleanUpByChart, podsOf, restartPods, rollbackPods, upgradePods } from '../apps/chart.ts';
import { flowDuring, machineState, podOn } from './scenario.ts';
import { up } from '../substrate/up.ts';
import { verify } from '../cli/verify.ts';
import { onNode } from '../node/node.ts';

/** The network as a cluster runs it: pods of our image, installed by our chart. One lab serves all tests of this file. */

const layout = layoutOf({ agents: 'pods' });
const GATEWAYS_AND_WORKERS = ['s1-g1', 's1-w1', 's2-g1', 's2-w1'] as const;
let before: Record<string, string[]>;

beforeAll(async () => {
  await down(); // what an interrupted run left
  before = machineState();
  await up(layout);
}, 300_000);
afterAll(down, 60_000);

/** Numbered datagrams across the sites during `disturb`, which must not outlast them. */
const flowAcross = async (seconds: number, disturb: () => Promise<void>) => {
  const ends = { from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1'), seconds };
  const started = Date.now();
  let tookMs = Number.POSITIVE_INFINITY;
  const report = await flowDuring(ends, async () => {
    await disturb();
    tookMs = Date.now() - started;
  });
  expect(tookMs, 'what was to disturb the flow took longer than the flow').toBeLessThan(seconds * 1000);
  return report;
};

/** The one layout of the eBPF maps that is in use on a node. */
const layoutAt = (node: string): string => {
  const layouts = onNode(node, 'ls', dirname(PIN_FOLDER)).match(/^v\d+$/gm);
  expect(layouts, node).toHaveLength(1);
  return layouts![0];
};

/** Number of the eBPF program at the anchor. bpftool of Debian 12 does not know tcx links; our own library does. */
const programAt = (node: string): number => {
  const pin = join(dirname(PIN_FOLDER), layoutAt(node), 'links/unbounded0');
  const script = `import('${checkout}/libs/libbpf-ts/src/index.ts').then((b) => console.log(b.openPinnedLink('${pin}').info.programId))`;
  return Number(onNode(node, nodeJs, '-e', script));
};

test('every pod reaches every pod, node and Service, and the outside world', { timeout: 240_000 }, async () => {
  expect(await verify(layout)).toBe(true);
});

test('the agent runs with five capabilities', () => {
  const [pid = ''] = onNode('s1-w1', 'pgrep', '-f', '^/usr/bin/node .*/unbounded/apps/node-dataplane')
    .trim()
    .split('\n');
  const status = onNode('s1-w1', 'cat', `/proc/${pid}/status`);
  const [NET_ADMIN, NET_RAW, SYS_NICE, PERFMON, BPF] = [12n, 13n, 23n, 38n, 39n];
  const capabilities = [NET_ADMIN, NET_RAW, SYS_NICE, PERFMON, BPF].reduce((all, one) => all | (1n << one), 0n);
  expect(status).toContain(`CapPrm:\t${capabilities.toString(16).padStart(16, '0')}`);
  expect(status).toContain('NoNewPrivs:\t1');
});

test('no datagram is lost while agents on gateways and workers are deleted', { timeout: 240_000 }, async () => {
  const report = await flowAcross(60, async () => {
    for (const node of GATEWAYS_AND_WORKERS) await restartPods(layout, 'node-dataplane', node);
  });
  expect(report).toMatchObject({ sent: 60_000, received: 60_000 });
});

test(
  'no datagram is lost during a rolling update to the next version and back, which migrate to another layout of the maps and back',
  { timeout: 600_000 },
  async () => {
    const programs: number[][] = [GATEWAYS_AND_WORKERS.map(programAt)];
    const versions: string[] = [];
    const layouts: string[] = [];
    const note = async (): Promise<void> => {
      programs.push(GATEWAYS_AND_WORKERS.map(programAt));
      layouts.push(...new Set(GATEWAYS_AND_WORKERS.map(layoutAt)));
      const pods = await podsOf(layout, 'node-dataplane');
      versions.push(...new Set(pods.map(({ spec }) => spec.containers[0]!.image.split(':')[1]!)));
    };
    const report = await flowAcross(150, async () => {
      await upgradePods(layout);
      await note();
      await rollbackPods(layout);
      await note();
    });
    expect(report).toMatchObject({ sent: 150_000, received: 150_000 });
    expect(versions).toEqual([NEXT_VERSION, VERSION]);
    expect(layouts).toEqual([expect.not.stringMatching(basename(PIN_FOLDER)), basename(PIN_FOLDER)]);
    for (const [index] of GATEWAYS_AND_WORKERS.entries())
      expect(new Set(programs.map((seen) => seen[index])).size, GATEWAYS_AND_WORKERS[index]).toBe(3);
  },
);

test(
  'a keeper that is deleted takes its tunnels along, and its successor brings them back',
  { timeout: 120_000 },
  async () => {
    const report = await flowAcross(30, () => restartPods(layout, 'node-keeper', 's1-g1'));
    expect(report.lost).toBeGreaterThan(0); // the flow passes this keeper: the tests above can fail
    expect(report.losses.at(-1)!.atMillis).toBeLessThan(25_000);
  },
);

test('a clean-up by the chart leaves nothing of ours on any node', { timeout: 120_000 }, async () => {
  await cleanUpByChart(layout);
  for (const { name } of layout.nodes) {
    expect(onNode(name, 'ip', 'route', 'show', 'proto', '117'), name).toBe('');
    expect(onNode(name, 'ip', '-br', 'link'), name).not.toMatch(/^(unbounded0|vxlan0|wg)/m);
    expect(onNode(name, 'nft', 'list', 'tables'), name).not.toContain('unbounded');
    expect(onNode(name, 'ls', '/sys/fs/bpf', '/etc/cni/net.d'), name).not.toContain('unbounded');
  }
});

test('down leaves nothing', { timeout: 60_000 }, async () => {
  await down();
  expect(machineState()).toEqual(before);
});
