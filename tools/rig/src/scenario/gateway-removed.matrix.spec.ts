import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { kubectl } from '../kubernetes/control-plane.ts';
import { layoutOf } from '../layout/layout.ts';
import { down } from '../substrate/down.ts';
import { up } from '../substrate/up.ts';
import { powerOff } from './outages.ts';
import { podOn, type RunningFlow, startFlow } from './scenario.ts';

/** A gateway that failed is taken out of the cluster, as autoscalers do. */

const layout = layoutOf({ gateways: 2, workers: 1 });
/** By their ports some of them would go by each gateway. */
const FLOWS = 12;
const PER_SECOND = 100;
/** Three probes of a second each, and a moment. */
const FAILED_OVER_MS = 8000;
/** The former way was sent by for four seconds. */
const REMOVED_MS = 12_000;

beforeAll(async () => {
  await down();
  await up(layout);
}, 300_000);
afterAll(down, 60_000);

test('a gateway that is dead, and whose Node is deleted minutes later, takes no packet with it', async () => {
  const gateway = layout.nodes.find(({ name }) => name === 's1-g2')!;
  const [from, to] = [await podOn(layout, 's1-w1'), await podOn(layout, 's2-w1')];
  const outage = powerOff(layout, gateway);
  outage.begin();
  try {
    await delay(FAILED_OVER_MS);
    const flows: RunningFlow[] = await Promise.all(
      Array.from({ length: FLOWS }, () => startFlow(from, to, PER_SECOND)),
    );
    await kubectl(layout, ['delete', 'node', gateway.name, '--wait=false']);
    await delay(REMOVED_MS);
    const reports = await Promise.all(flows.map((flow) => flow.end()));
    expect(reports.map(({ lost }) => lost)).toEqual(reports.map(() => 0));
    expect(Math.min(...reports.map(({ sent }) => sent))).toBeGreaterThan((REMOVED_MS / 1000) * PER_SECOND * 0.8);
  } finally {
    outage.end();
  }
}, 120_000);
