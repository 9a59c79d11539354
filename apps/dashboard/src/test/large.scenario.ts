import { setTimeout as sleep } from 'node:timers/promises';
import type { CDPSession, Page } from 'playwright-core';
import { openBrowser, signIn } from '@unbounded/testing/browser';
import { firstPaint, memoryOf } from './page-measures.testdata.ts';
import { type ReplayedCluster, replayCluster } from './replayed-cluster.testdata.ts';
import { sitesOf } from './reports.testdata.ts';
import { listenToStream } from './stream-listener.testdata.ts';
import { measureUpdate, reportTroubles, type Update } from './updates.testdata.ts';

/** Measures the page with 5,000 nodes in 100 sites, for `tools/bench dashboard`: one line of JSON with all that was seen. */

const [SITES, WORKERS] = [Number(process.env['SITES'] ?? 100), 48];
const MINUTES = Number(process.env['MINUTES'] ?? 10);
const LOADS = 9;

const say = (text: string): void => void process.stderr.write(`${text}\n`);

const measureLoads = async (page: Page, client: CDPSession) => {
  const loads = [];
  for (let load = 0; load < LOADS; load++) {
    loads.push(await firstPaint(page, client));
    await sleep(1000);
  }
  return loads;
};

const follow = async (cluster: ReplayedCluster, page: Page, client: CDPSession) => {
  using listener = await listenToStream(cluster);
  const updates: Update[] = [];
  const memory = [await memoryOf(client)];
  const began = performance.now();
  for (let minute = 1; minute <= MINUTES; minute++) {
    while (performance.now() < began + minute * 60_000)
      updates.push(await measureUpdate(cluster, { page, listener }, updates.length));
    memory.push(await memoryOf(client));
    say(`minute ${minute}: ${updates.length} updates, ${memory.at(-1)!.heapMiB.toFixed(1)} MiB`);
  }
  return { updates, memory, viewCharacters: listener.viewCharacters };
};

const began = performance.now();
await using cluster = await replayCluster(sitesOf(SITES, WORKERS));
say(`${cluster.reports.size} nodes report after ${((performance.now() - began) / 1000).toFixed(0)} s`);
await reportTroubles(cluster);
await using browser = await openBrowser();
const { page, complaints } = await browser.openPage();
await signIn(page, cluster);
await page.getByText('something is wrong here').first().waitFor();
const client = await page.context().newCDPSession(page);
const loads = await measureLoads(page, client);
const followed = await follow(cluster, page, client);
const { slowestTurnMs } = cluster;
process.stdout.write(`${JSON.stringify({ loads, ...followed, slowestTurnMs, complaints })}\n`);
