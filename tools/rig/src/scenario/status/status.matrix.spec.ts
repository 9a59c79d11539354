import { setTimeout as delay } from 'node:timers/promises';
import type { ClusterView } from '@unbounded/status';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { metricsOn } from '../../apps/agent-state.ts';
import { startAggregator } from '../../apps/aggregator.ts';
import { AGGREGATOR } from '../../apps/tokens.ts';
import { layoutOf } from '../../layout/layout.ts';
import { stopDaemon } from '../../machine/daemon.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { allHealthy, blockUdp, type Outage, powerOff } from '../outages.ts';
import { withoutApiServer } from '../restarts.ts';
import { flowDuring, podOn, timeUntil } from '../scenario.ts';
import { openDashboard, showView, tableOn } from '../../status/page.ts';
import { createViewer, type Viewer } from '../../status/viewer.ts';

/** What the view of the cluster shows while things break, next to what the network does. */

const layout = layoutOf({ gateways: 2, workers: 1 });
/** Three probes of a second each, the first one up to a second after the last answer. */
const DETECTION_MS = 4000;
const SHOWN_MS = 5000;
const SHOWN_BY_API_MS = 30_000;
const AWAY_MS = 60_000;

let viewer: Viewer;
let outage: Outage | undefined;

const begin = (one: Outage): void => {
  outage = one;
  one.begin();
};
const end = (): void => {
  outage?.end();
  outage = undefined;
};

const isQuiet = ({ summary, order }: ClusterView): boolean =>
  summary.reporting === layout.nodes.length && order.length === 0;
/** While there is no aggregator nothing is shown. */
const shows = (what: string, holds: (view: ClusterView) => boolean, limitMs: number): Promise<number> =>
  timeUntil(what, () => viewer.view().then(holds, () => false), limitMs);

beforeAll(async () => {
  await down();
  await up(layout);
  viewer = await createViewer(layout);
  await shows('all is well', isQuiet, 60_000);
}, 300_000);
afterEach(end);
afterAll(down, 60_000);

test('a gateway that is off is shown within 5 s of its detection, with what stands in; its return likewise', async () => {
  const gateway = layout.nodes.find(({ name }) => name === 's2-g1')!;
  const id = `Node/${gateway.name}/GatewayDown`;
  await using dashboard = await openDashboard(layout);
  const onPage = dashboard.page.getByText('traffic goes by s2-g2 instead');
  expect(await onPage.count()).toBe(0);
  begin(powerOff(layout, gateway));
  const shownMs = await shows('the gateway is down', ({ problems }) => id in problems, DETECTION_MS + SHOWN_MS);
  await onPage.first().waitFor({ timeout: SHOWN_MS });
  await shows(
    'what stands in',
    ({ problems, reach }) =>
      problems[id]?.consequence === 'traffic goes by s2-g2 instead' && reach['s1']?.['s2']?.state === 'Reachable',
    SHOWN_MS,
  );
  const { problems, nodes } = await viewer.view();
  expect(problems[id]).toMatchObject({ severity: 'warning', sites: ['s2'] });
  expect(nodes['s2-w1']?.state).toBe('Healthy');
  end();
  const backMs = await shows('the gateway is back', ({ problems: now }) => !(id in now), 30_000);
  console.log(`shown after ${shownMs} ms, gone ${backMs} ms after its return`);
  const heading = dashboard.page.getByRole('heading', { name: /^Problems \(/ });
  await timeUntil('the page has no problem either', async () => (await heading.innerText()) === 'Problems (0)', 30_000);
  expect(dashboard.complaints()).toEqual([]);
  await allHealthy(layout, 60_000);
  await shows('all is well', isQuiet, 30_000);
}, 180_000);

test('the page has what a node forwards by, as planned and as its kernel has it', async () => {
  await using dashboard = await openDashboard(layout);
  const { page } = dashboard;
  await showView(page, '#/nodes/s1-w1', 'Node s1-w1');
  await page.getByRole('button', { name: 'Read from the node' }).click();
  await page.getByText(/0 of \d+ differ from the plan/).waitFor({ timeout: 20_000 });
  const entries = page.getByRole('region', { name: 'Entries and routes' });
  expect(await entries.getByRole('row').count()).toBeGreaterThan(3);
  expect(dashboard.complaints()).toEqual([]);
}, 60_000);

test('a site whose overlay is cut is unreachable within 30 s, and shows what its nodes write to the API server', async () => {
  await using dashboard = await openDashboard(layout);
  begin(blockUdp('s2'));
  await shows('the site is unreachable', ({ problems }) => 'Site/s2/SiteUnreachable' in problems, SHOWN_BY_API_MS);
  await shows(
    'its nodes by the API server',
    ({ nodes, problems }) =>
      nodes['s2-w1']?.source === 'api' &&
      problems['Node/s2-w1/self/PeersUnhealthy']?.consequence.includes('Node object') === true,
    SHOWN_BY_API_MS,
  );
  await showView(dashboard.page, '#/nodes', 'Nodes');
  const shown = await tableOn(dashboard.page);
  expect(shown.get('s2-w1')?.['Source']).toMatch(/^api/);
  end();
  await allHealthy(layout, 60_000);
  expect(await shows('all is well', isQuiet, 60_000)).toBeLessThan(60_000);
}, 180_000);

const SAMPLES = 20;
const SAMPLE_MS = 500;
/** MiB of each agent's heap as its garbage collector leaves it: the least of ten seconds. */
const heapMib = async (): Promise<Map<string, number>> => {
  const least = new Map<string, number>();
  for (let sample = 0; sample < SAMPLES; sample++) {
    for (const { name } of layout.nodes) {
      const [, bytes] = /^nodejs_heap_size_used_bytes (\S+)/m.exec(metricsOn(name)) ?? [];
      if (bytes === undefined) continue; // it did not answer in time
      least.set(name, Math.min(least.get(name) ?? Infinity, Number(bytes) / 2 ** 20));
    }
    await delay(SAMPLE_MS);
  }
  return least;
};
/** The first outage makes room for what any outage needs. */
const MOST_GROWTH_MIB = 8;
const FIRST_AWAY_MS = 20_000;

test.each([
  [
    'the aggregator',
    async (awayMs: number) => {
      await stopDaemon(AGGREGATOR);
      await delay(awayMs);
      await startAggregator(layout);
    },
  ],
  [
    'the API server',
    (awayMs: number) =>
      withoutApiServer(layout, async () => {
        const beganMs = Date.now();
        await delay(awayMs);
        if (awayMs === FIRST_AWAY_MS) return;
        // What is not from reports is shown as what was.
        const { objectsTime } = await viewer.view();
        expect(Math.abs(Date.parse(objectsTime ?? '') - beganMs)).toBeLessThan(10_000);
      }),
  ],
])(
  'without %s for a minute nothing is lost, and no agent grows',
  async (_, disturb) => {
    await disturb(FIRST_AWAY_MS);
    await shows('all is well', isQuiet, 60_000);
    const before = await heapMib();
    const ends = { from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1'), seconds: 80 };
    const { sent, lost } = await flowDuring(ends, () => disturb(AWAY_MS));
    expect({ lost, isSent: sent > 70_000 }).toEqual({ lost: 0, isSent: true });
    await shows('all is well', (view) => isQuiet(view) && view.objectsTime === undefined, 30_000);
    for (const [node, mib] of await heapMib()) expect(mib - before.get(node)!, node).toBeLessThan(MOST_GROWTH_MIB);
  },
  240_000,
);
