import { setTimeout as delay } from 'node:timers/promises';
import type { ClusterView } from '@unbounded/status';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { aggregatorDaemons, startAggregator } from '../../apps/aggregator.ts';
import { startRedis } from '../../features/redis/redis.ts';
import { hostOf } from '../../layout/addresses.ts';
import { layoutOf } from '../../layout/layout.ts';
import { pidOf, stopDaemon } from '../../machine/daemon.ts';
import { openDashboard } from '../../status/page.ts';
import { openPassage } from '../../status/passage.ts';
import { createViewer, type Viewer, viewerToken } from '../../status/viewer.ts';
import { startAgent } from '../../substrate/agents.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { stopAgent } from '../../apps/agents.ts';
import { timeUntil } from '../scenario.ts';
import { createFollower, type Follower, numbersOf } from './follower.ts';

/** Two replicas of the status aggregator and a Redis: clients lose nothing when a replica dies, and Redis may be away. */

const layout = layoutOf({ redis: true, workers: 1 });
const [FIRST, SECOND] = aggregatorDaemons(layout) as [string, string];
const PORTS = { [FIRST]: 9443, [SECOND]: 9444 };

let viewer: Viewer;
let sockets: Readonly<Record<string, string>>;
let token: string;
const opened: Disposable[] = [];
const followers: Follower[] = [];

beforeAll(async () => {
  await down();
  await up(layout);
  viewer = await createViewer(layout);
  token = await viewerToken(layout);
  const passages = await Promise.all(
    [FIRST, SECOND].map((name) =>
      openPassage(layout, name, `${hostOf(layout.controlPlane.internalIp)}:${PORTS[name]}`),
    ),
  );
  opened.push(...passages);
  sockets = { [FIRST]: passages[0]!.socket, [SECOND]: passages[1]!.socket };
  await quiet();
}, 300_000);
afterEach(() => {
  for (const follower of followers.splice(0)) follower[Symbol.dispose]();
});
afterAll(async () => {
  for (const one of opened) one[Symbol.dispose]();
  await down();
}, 60_000);

const SEEN_MS = 60_000;
/** The Service leads to either replica; one that does not answer shows nothing. */
const seen = (what: string, holds: (view: ClusterView) => boolean): Promise<number> =>
  timeUntil(what, () => viewer.view().then(holds, () => false), SEEN_MS);
const quiet = (): Promise<number> =>
  seen('all is well', ({ summary, order }) => summary.reporting === layout.nodes.length && order.length === 0);

const follow = async (replica: string): Promise<Follower> => {
  const follower = createFollower(token);
  followers.push(follower);
  // It may have been started just now.
  for (const end = Date.now() + SEEN_MS; follower.steps.length === 0 && Date.now() < end; await delay(500))
    if (follower.isAlone) follower.go(sockets[replica]!);
  expect(follower.steps.length).toBeGreaterThan(0);
  return follower;
};

/** Changes that everybody is shown: an agent is away until that is seen. @param meanwhile what happens then */
const disturb = async (meanwhile: () => Promise<void> = async () => undefined): Promise<void> => {
  const node = layout.nodes.find(({ name }) => name === 's2-w1')!;
  await stopAgent(node.name, 'node-dataplane');
  await seen('a problem', ({ order }) => order.length > 0);
  await meanwhile();
  await startAgent(layout, node, 'node-dataplane');
  await quiet();
};

const historiesOf = ({ steps }: Follower): Set<string> => new Set(steps.map(({ position }) => position.split('-')[0]!));

test('clients of a replica that is killed go on at the other, and miss no update', async () => {
  await using dashboard = await openDashboard(layout);
  const { page } = dashboard;
  const [moving, staying] = [await follow(FIRST), await follow(SECOND)];
  await disturb(async () => {
    process.kill(pidOf(FIRST)!, 'SIGKILL');
    await timeUntil('the connection is lost', () => !moving.isOpen, 5000);
  });
  // Whichever replica it was at.
  await page.getByText('Live', { exact: true }).waitFor({ timeout: SEEN_MS });
  await page.getByRole('heading', { name: 'Problems (0)' }).waitFor({ timeout: SEEN_MS });
  expect(await page.getByText('Ended lately (').innerText()).not.toContain('(0)');
  expect(dashboard.complaints()).toEqual([]);
  // Only now: what was shown meanwhile it gets by its position.
  moving.go(sockets[SECOND]!);
  await timeUntil(
    'both are at the same position',
    () => moving.steps.at(-1)?.position === staying.steps.at(-1)?.position,
    20_000,
  );
  expect(historiesOf(moving).size).toBe(1);
  const numbers = numbersOf(moving);
  expect(numbers.length).toBeGreaterThan(2);
  expect(numbers).toEqual(numbers.map((_, at) => numbers[0]! + at));
  expect(moving.steps.filter(({ type }) => type === 'view')).toHaveLength(1);
  expect(moving.view()).toEqual(staying.view());
  await startAggregator(layout);
}, 500_000);

test('while Redis is away both go on with a notice, and recover without a restart when it is back, empty', async () => {
  await quiet();
  const pids = [pidOf(FIRST), pidOf(SECOND)];
  await using dashboard = await openDashboard(layout);
  const follower = await follow(FIRST);
  await stopDaemon('redis');
  await timeUntil(
    'a notice',
    () =>
      viewer.notices().then(
        (notices) => notices.length > 0,
        () => false,
      ),
    20_000,
  );
  await dashboard.page.getByText(/Redis/).first().waitFor({ timeout: 20_000 });
  await delay(10_000);
  startRedis(layout);
  await timeUntil(
    'no notice',
    () =>
      viewer.notices().then(
        (notices) => notices.length === 0,
        () => false,
      ),
    30_000,
  );
  await quiet();
  const { length } = follower.steps;
  await disturb();
  await timeUntil('updates come again', () => follower.steps.length > length, 30_000);
  await dashboard.page.getByText(/Redis/).first().waitFor({ state: 'hidden', timeout: 20_000 });
  await dashboard.page.getByRole('heading', { name: 'Problems (0)' }).waitFor({ timeout: 20_000 });
  expect([pidOf(FIRST), pidOf(SECOND)]).toEqual(pids);
}, 600_000);
