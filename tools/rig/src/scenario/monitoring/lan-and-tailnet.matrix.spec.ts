import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { layoutOf } from '../../layout/layout.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { timeUntil } from '../scenario.ts';
import { emptyPanels, emptyRules, promtoolFindings } from './empty-queries.ts';

/** A real Prometheus reads a lab with a Network and a tailnet: what dashboards.matrix.spec.ts has nothing of. */

const layout = layoutOf({ workers: 1, prometheus: true, lan: true, tailnet: true });

/** Parts of the names of metrics. */
const OF_THIS_LAB = ['_l2_', '_tailnet_'];
/** The node reports none: it is a series for each reason. */
const WITHOUT_SERIES = 'unbounded_agent_problems';
const isExpected = (expression: string): boolean =>
  OF_THIS_LAB.some((part) => expression.includes(part)) && !expression.includes(WITHOUT_SERIES);

beforeAll(async () => {
  await down();
  await up(layout);
}, 400_000);
afterAll(() => down(), 60_000);

test('promtool has nothing to say about the metrics of any program', async () => {
  const findings = await promtoolFindings(layout);
  const programs = ['l2-networks', 'tailnet', 'tailnet-registrar', 'node-dataplane'];
  expect([...findings.keys()]).toEqual(expect.arrayContaining(programs.map((name) => `unbounded-${name}`)));
  expect([...findings].filter(([, finding]) => finding !== '')).toEqual([]);
});

describe('every query of Networks and tailnets finds something', () => {
  const node = layout.nodes.find(({ role }) => role === 'worker')!.name;

  test('of every panel', { timeout: 120_000 }, async () => {
    const empty = (): Promise<string[]> => emptyPanels(layout, node, isExpected);
    await timeUntil('all have data', async () => (await empty()).length === 0, 90_000).catch(() => undefined);
    expect(await empty()).toEqual([]);
  });

  test('of every rule', async () => {
    expect(await emptyRules(layout, isExpected)).toEqual([]);
  });
});
