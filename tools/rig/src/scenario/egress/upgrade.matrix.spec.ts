import { afterAll, beforeAll, expect, test } from 'vitest';
import { applyChart, CURRENT, type Installation, rollbackPods, waitForChart } from '../../apps/chart.ts';
import { partnerIps } from '../../features/partner/layout.ts';
import { layoutOf } from '../../layout/layout.ts';
import { down } from '../../substrate/down.ts';
import { upFormer } from '../former-version.ts';
import { allHealthy } from '../outages.ts';
import { type RunningFlow, startFlow, timeUntil } from '../scenario.ts';
import { applyRule, isRuleReady, type Selected } from './rule.ts';
import { seenByPartnerAs } from './traffic.ts';
import { type Carried, selectedAlone, uplinksDuring } from './uplinks.ts';

/** From an earlier version with egress to this one and back, while selected pods talk to the partner. UNBOUNDED_UPGRADE_FROM names the commit. */

/** The first version with egress. */
const UPGRADE_FROM = process.env['UNBOUNDED_UPGRADE_FROM'] ?? '76b00b8';

const layout = layoutOf({ agents: 'pods', workers: 1, ip: 'dual', partner: true });
let former: Installation;
let selected: Selected;

beforeAll(async () => {
  former = await upFormer(layout, UPGRADE_FROM);
  await allHealthy(layout, 60_000);
  selected = await applyRule(layout);
  await timeUntil('every pod is admitted', everybodyIsAdmitted, ADMITTED_MS);
}, 600_000);
afterAll(down, 60_000);

const ADMITTED_MS = 30_000;
const PER_SECOND = 50;

const everybodyIsAdmitted = async (): Promise<boolean> => {
  const seen = await Promise.all(
    selected.pods.flatMap((pod) => partnerIps(layout).map((ip) => seenByPartnerAs(pod, ip))),
  );
  return seen.every((text) => text !== undefined && selected.addresses.includes(text));
};

/** Datagrams of every selected pod, in each family, while something happens. */
const talkDuring = async (act: () => Promise<void>): Promise<Carried> => {
  const flows: RunningFlow[] = await Promise.all(
    selected.pods.flatMap((pod) => partnerIps(layout).map((ip) => startFlow(pod, { ip }, PER_SECOND))),
  );
  const carried = await uplinksDuring(layout, selectedAlone(layout, selected), act);
  const reports = await Promise.all(flows.map((flow) => flow.end()));
  console.log(
    reports.map(({ sent, lost, largestGapMillis }) => `${lost} of ${sent}, ${largestGapMillis} ms`).join('; '),
  );
  return carried;
};

const steps = [
  ['to this version', () => applyChart(layout, CURRENT.version).then(() => waitForChart(layout))],
  ['back to the former one', () => rollbackPods(layout, former)],
] as const;

test.each(steps)(
  '%s: no packet has another source, and the address stays where it is',
  { timeout: 600_000 },
  async (_, step) => {
    const carried = await talkDuring(step);
    expect(carried.improper).toEqual([]);
    expect([...carried.proper.keys()]).toEqual([selected.owner]);
    await timeUntil('the rule is ready', () => isRuleReady(layout), ADMITTED_MS);
    await timeUntil('every pod is admitted', everybodyIsAdmitted, ADMITTED_MS);
  },
);
