import { AxeBuilder } from '@axe-core/playwright';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openBrowser, signIn, type TestBrowser } from '@unbounded/testing/browser';
import { memoryOf } from './page-measures.testdata.ts';
import { type ReplayedCluster, replayCluster } from './replayed-cluster.testdata.ts';
import { sitesOf } from './reports.testdata.ts';
import { listenToStream } from './stream-listener.testdata.ts';
import { measureUpdate, reportTroubles } from './updates.testdata.ts';

/** The page with 5,000 nodes in 100 sites, each pushing reports of its own; figures are in docs/benchmarks.md (tools/bench dashboard). */

const [SITES, WORKERS] = [100, 48];
const MINUTES = 10;
/** What lists keep in the document, whatever the cluster has. */
const MOST_ELEMENTS = 6000;

let cluster: ReplayedCluster;
let browser: TestBrowser;

beforeAll(async () => {
  cluster = await replayCluster(sitesOf(SITES, WORKERS));
  await reportTroubles(cluster);
  browser = await openBrowser();
}, 300_000);
afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
});

const VIEWS = [
  ['', 'Overview'],
  ['#/sites', 'Sites'],
  ['#/sites/s7', 'Site s7'],
  ['#/matrix?show=rtt', 'Reach by site'],
  ['#/matrix/s7/s100', 'Reach by node: s7 to s100'],
  ['#/pools', 'Pools and gateways'],
  ['#/nodes', 'Nodes'],
  ['#/nodes/s7-g1', 'Node s7-g1'],
  ['#/topology', 'Topology'],
] as const;

describe('with 5,000 nodes in 100 sites', () => {
  test('every view has no finding of axe, and keeps little in the document', { timeout: 180_000 }, async () => {
    const { page, complaints } = await browser.openPage();
    await signIn(page, cluster);
    await page.getByText('5,000 of 5,000').waitFor();
    for (const [address, title] of VIEWS) {
      await page.goto(`${cluster.url}${address}`);
      await page.getByRole('heading', { level: 1, name: title }).waitFor();
      const { violations } = await new AxeBuilder({ page }).analyze();
      expect(violations.map(({ id, nodes }) => `${title}: ${id}: ${nodes[0]?.html}`)).toEqual([]);
      expect(await page.locator('*').count(), title).toBeLessThan(MOST_ELEMENTS);
    }
    expect(complaints).toEqual([]);
    await browser.closePages();
  });

  test(
    'for ten minutes it follows every change, and needs no more memory than before',
    { timeout: 900_000 },
    async () => {
      const { page, complaints } = await browser.openPage();
      const client = await page.context().newCDPSession(page);
      using listener = await listenToStream(cluster);
      await signIn(page, cluster);
      const heaps: number[] = [];
      let turn = 0;
      for (let minute = 0; minute <= MINUTES; minute++) {
        const until = performance.now() + (minute === 0 ? 20_000 : 60_000);
        while (performance.now() < until) {
          await measureUpdate(cluster, { page, listener }, turn++);
          await sleep(2000);
        }
        heaps.push((await memoryOf(client)).heapMiB);
      }
      // Straight through the minutes, but for the first one: what the page was warmed up by is no growth.
      const [early, late] = [Math.max(...heaps.slice(1, 4)), Math.max(...heaps.slice(-3))];
      expect(late, `MiB after collections: ${heaps.map((heap) => heap.toFixed(1)).join(', ')}`).toBeLessThan(
        early * 1.1,
      );
      expect(await page.locator('*').count()).toBeLessThan(MOST_ELEMENTS);
      expect(complaints).toEqual([]);
    },
  );
});
