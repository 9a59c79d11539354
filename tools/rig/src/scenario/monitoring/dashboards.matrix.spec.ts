import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { layoutOf } from '../../layout/layout.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { applyRule } from '../egress/rule.ts';
import { timeUntil } from '../scenario.ts';
import { emptyPanels, emptyRules, promtoolFindings } from './empty-queries.ts';
import { blockedSite, deadGateway, exhaustedPods, type Fault, silentAgent, unownedAddress } from './faults.ts';
import { firingAlerts, queryMetrics, shortenWaits } from './prometheus.ts';

/**
 * A real Prometheus with the chart's rules reads a lab of most parts: alerts fire by what they are about, and clear; every panel and rule
 * finds what it reads.
 */

const layout = layoutOf({
  gateways: 2,
  workers: 1,
  ...{ prometheus: true, redis: true, partner: true, blockUdp: 'none' },
});
const nodeOf = (role: string, site: string) =>
  layout.nodes.findLast((node) => node.role === role && node.site === site)!;

/** Instead of the minutes of the chart's rules. */
const WAIT = '10s';
const FIRES_MS = 120_000;
/** Relays are left only some time after UDP passes again, and the windows of rates end. */
const CLEARS_MS = 240_000;

beforeAll(async () => {
  await down();
  await up(layout);
  await applyRule(layout);
  shortenWaits(WAIT);
}, 400_000);
afterAll(() => down(), 60_000);

const fires = (alert: string) => async (): Promise<boolean> => (await firingAlerts(layout)).includes(alert);

describe('an alert fires by its fault, and clears when that is over', () => {
  const faults: readonly (readonly [string, string, Fault])[] = [
    ['UnboundedGatewayDown', 'a gateway without power', deadGateway(layout, nodeOf('gateway', 's2'))],
    ['UnboundedPodCIDRsExhausted', 'a Site without a free block', exhaustedPods(layout)],
    ['UnboundedAgentDown', 'an agent that does not run', silentAgent(layout, nodeOf('worker', 's2'))],
    ['UnboundedRelayedPaths', 'a site that no UDP reaches', blockedSite('s2')],
    ['UnboundedEgressAddressUnowned', 'a pool of addresses without nodes', unownedAddress(layout)],
  ];
  test.each(faults)('%s: %s', { timeout: FIRES_MS + CLEARS_MS + 60_000 }, async (alert, _, fault) => {
    expect(await firingAlerts(layout)).not.toContain(alert);
    await fault.begin();
    try {
      await timeUntil(`${alert} fires`, fires(alert), FIRES_MS);
    } finally {
      await fault.end();
    }
    await timeUntil(`${alert} clears`, async () => !(await fires(alert)()), CLEARS_MS);
  });
});

test('when all faults are over nothing critical fires', { timeout: CLEARS_MS }, async () => {
  const critical = 'ALERTS{alertstate="firing",severity="critical"}';
  await timeUntil('none', async () => (await queryMetrics(layout, critical)).length === 0, CLEARS_MS);
});

/** Metrics that this lab has nothing of, and why: queries and rules that read one of these find nothing. */
const WITHOUT_SERIES: Readonly<Record<string, string>> = {
  unbounded_net_controller_node_problems: 'a series for each reason, and no Node has a rejected fact',
  unbounded_net_controller_egress_problems: 'a series for each reason, and no rule has a problem',
  unbounded_agent_problems: 'a series for each reason, and no agent has a problem',
  unbounded_egress_address_held: 'the panel shows those that are not held',
  unbounded_forwarding_blocked: 'a series for each chain that drops, and no firewall does',
  unbounded_net_controller_l2_locator_waiting_nodes: 'needs a Mesh with locators: lan-and-tailnet.matrix',
  unbounded_l2_received_frames_dropped_total: 'needs Networks: lan-and-tailnet.matrix',
  unbounded_tailnet_devices: 'needs a tailnet: lan-and-tailnet.matrix',
  unbounded_tailnet_api_calls_total: 'needs a tailnet: lan-and-tailnet.matrix',
};
const isExpected = (expression: string): boolean =>
  !Object.keys(WITHOUT_SERIES).some((metric) => expression.includes(metric));

test('promtool has nothing to say about the metrics of any program', async () => {
  const findings = await promtoolFindings(layout);
  expect(findings.size).toBe(7);
  expect([...findings].filter(([, finding]) => finding !== '')).toEqual([]);
});

describe('every query finds something', () => {
  test('of every panel', { timeout: 120_000 }, async () => {
    const node = nodeOf('gateway', 's1').name;
    const empty = (): Promise<string[]> => emptyPanels(layout, node, isExpected);
    // What a fault took away comes back with the next looks of the agents, which some take once in a minute.
    await timeUntil('all have data', async () => (await empty()).length === 0, 90_000).catch(() => undefined);
    expect(await empty()).toEqual([]);
  });

  test('of every rule', async () => {
    expect(await emptyRules(layout, isExpected)).toEqual([]);
  });
});
