import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { momentShown } from './page-measures.testdata.ts';
import type { ReplayedCluster } from './replayed-cluster.testdata.ts';
import { withoutPeer } from './reports.testdata.ts';
import type { StreamListener } from './stream-listener.testdata.ts';

/** Of one change that a node pushed. */
export interface Update {
  /** From the push of the agent, and from the message of the aggregator, until it is on the screen. */
  readonly fromReportMs: number;
  readonly fromSentMs: number;
  readonly characters: number;
}

const now = (): number => performance.timeOrigin + performance.now();
/** Longer than the aggregator takes to compose: pushes come at any moment of its turn. */
const SPREAD_MS = 3000;

/** Nodes that see a gateway of their site fail with each change, and see it again with the next one. */
const WITNESSES = 5;

/** Fewer than the overview shows before it is asked for all. */
const TROUBLES = 20;

const flap = async (cluster: ReplayedCluster, site: number, isLost: boolean): Promise<void> => {
  for (let worker = 1; worker <= WITNESSES; worker++) {
    const node = `s${site}-w${worker}`;
    const report = cluster.reports.get(node)!;
    await cluster.report(node, isLost ? withoutPeer(report, `s${site}-g1`) : report);
  }
};

/** Nodes with something to say of themselves, so that there are problems to be drawn. */
export const reportTroubles = async (cluster: ReplayedCluster): Promise<void> => {
  const all = [...cluster.reports];
  for (const [node, report] of all.filter((_, index) => index % Math.ceil(all.length / TROUBLES) === 7))
    await cluster.report(node, { ...report, problems: [{ reason: 'Replayed', message: 'something is wrong here' }] });
};

/** A problem with a text of its own, among changes of another site; the page shows the overview. */
export const measureUpdate = async (
  cluster: ReplayedCluster,
  { page, listener }: { readonly page: Page; readonly listener: StreamListener },
  turn: number,
): Promise<Update> => {
  await sleep(Math.random() * SPREAD_MS);
  const sites = cluster.reports.size / 50;
  await flap(cluster, 2 + (Math.floor(turn / 2) % (sites - 1)), turn % 2 === 0);
  const text = `this is change ${turn}.`;
  const [shown, sent] = [momentShown(page, text), listener.momentSent(text)];
  const pushedAt = now();
  await cluster.report('s1-w1', {
    ...cluster.reports.get('s1-w1')!,
    problems: [{ reason: 'Replayed', message: text }],
  });
  const [shownAt, { at, characters }] = await Promise.all([shown, sent]);
  return { fromReportMs: shownAt - pushedAt, fromSentMs: shownAt - at, characters };
};
