import { setTimeout as delay } from 'node:timers/promises';
import { VERSION } from '@unbounded/oci/unbounded';
import type { ClusterView } from '@unbounded/status';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { waitForPodsOf } from '../../apps/chart.ts';
import { AGGREGATOR, NAMESPACE } from '../../apps/tokens.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { layoutOf } from '../../layout/layout.ts';
import { openPassage, type Passage } from '../../status/passage.ts';
import { aggregatorEndpoint, createViewer, type Viewer, viewerToken } from '../../status/viewer.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { cutLink } from '../outages.ts';
import { timeUntil } from '../scenario.ts';
import { createFollower, type Follower, numbersOf } from './follower.ts';

/** The status aggregator of the chart gets more replicas and fewer again, while clients follow the view by its Service. */

const layout = layoutOf({ agents: 'pods', redis: true, workers: 1 });
const CLIENTS = 8;
const SEEN_MS = 90_000;

let viewer: Viewer;
let passage: Passage;
const followers: Follower[] = [];

beforeAll(async () => {
  await down();
  await up(layout);
  viewer = await createViewer(layout);
  passage = await openPassage(layout, 'scaling', await aggregatorEndpoint(layout));
  await quiet();
}, 400_000);
afterEach(() => {
  for (const follower of followers.splice(0)) follower[Symbol.dispose]();
});
afterAll(async () => {
  passage[Symbol.dispose]();
  await down();
}, 60_000);

/** A connection that begins at a replica that ends shows nothing. */
const seen = (what: string, holds: (view: ClusterView) => boolean): Promise<number> =>
  timeUntil(what, () => viewer.view().then(holds, () => false), SEEN_MS);
const quiet = (): Promise<number> =>
  seen('all is well', ({ summary, order }) => summary.reporting === layout.nodes.length && order.length === 0);

/** As the dashboard does: whoever loses a connection opens another one, from where it was. */
const keepConnected = (): (() => void) => {
  let isOver = false;
  const keep = async (follower: Follower): Promise<void> => {
    for (; !isOver; await delay(500)) if (follower.isAlone) follower.go(passage.socket);
  };
  for (const follower of followers) void keep(follower);
  return () => (isOver = true);
};

const scaleTo = async (count: number): Promise<void> => {
  await kubectl(layout, ['scale', `deployment/${AGGREGATOR}`, '-n', NAMESPACE, `--replicas=${count}`]);
  await waitForPodsOf(layout, { app: AGGREGATOR, count, version: VERSION });
};
const [worker, gateway] = ['s1-w1', 's1-g1'].map((name) => layout.nodes.find((node) => node.name === name)!);
/** By the views of the clients, none of which goes back: what the Service answers may come from a replica that is a moment behind. */
const shownToAll = (what: string, holds: (view: ClusterView) => boolean): Promise<number> =>
  timeUntil(what, () => followers.every((follower) => holds(follower.view() as unknown as ClusterView)), SEEN_MS);
/** Changes that everybody is shown, and that keep no client from a replica. */
const disturb = async (): Promise<void> => {
  const outage = cutLink(worker!, gateway!);
  outage.begin();
  await shownToAll('a problem', ({ order }) => order.length > 0);
  outage.end();
  await shownToAll('no problem', ({ order }) => order.length === 0);
};

test('from two replicas to four and back no client misses an update', { timeout: 1_000_000 }, async () => {
  const token = await viewerToken(layout);
  for (let client = 0; client < CLIENTS; client++) followers.push(createFollower(token));
  const release = keepConnected();
  await timeUntil('all follow', async () => followers.every(({ steps }) => steps.length > 0), SEEN_MS);
  for (const count of [4, 2]) {
    await Promise.all([scaleTo(count), disturb()]);
    await disturb();
  }
  const positions = (): Set<string | undefined> => new Set(followers.map(({ steps }) => steps.at(-1)?.position));
  await timeUntil('all are at the same position', async () => positions().size === 1, 30_000).catch((error: Error) => {
    const states = followers.map(({ steps, isOpen }) => `${steps.at(-1)?.position} ${isOpen ? 'open' : 'not open'}`);
    throw new Error(`${error.message}: ${states.join(', ')}`);
  });
  release();
  for (const follower of followers) {
    const numbers = numbersOf(follower);
    expect(numbers.length).toBeGreaterThan(8);
    expect(numbers).toEqual(numbers.map((_, at) => numbers[0]! + at));
    expect(follower.steps.filter(({ type }) => type === 'view')).toHaveLength(1);
    expect(follower.view()).toEqual(followers[0]!.view());
  }
});
