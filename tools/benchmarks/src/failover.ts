import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { LabLayout, LabNode } from '@unbounded/rig/layout';
import {
  allHealthy,
  busiestGateway,
  cutLink,
  cutWan,
  deliveringGateway,
  noForwarding,
  type Outage,
  partition,
  powerOff,
  setProbing,
} from '@unbounded/rig/outages';
import { state } from '@unbounded/rig/paths';
import { killLeaders, restartEverything, withoutApiServer } from '@unbounded/rig/restarts';
import { type FlowReport, flowDuring, killAgent, podOn } from '@unbounded/rig/scenario';

/**
 * How long traffic is interrupted when something breaks: 1,000 numbered datagrams a second from a pod of one site to one
 * of another and back, while it does. See ../README.md.
 */

const PROBE_MS = Number(process.env['PROBE_MS'] ?? 100);
const MULTIPLIER = 3;
/** Long enough that a flow that is switched is told from one that waits. */
const OUTAGE_MS = Math.max(3000, 2.5 * PROBE_MS * MULTIPLIER);
/** Before the outage the flow runs for three seconds, and half a second goes into finding its gateway. */
const FLOW_SECONDS = Math.ceil((3500 + OUTAGE_MS + 500) / 1000);

interface Case {
  readonly name: string;
  readonly runs: number;
  /** Of the flow, where the usual ones are not enough. */
  readonly seconds?: number;
  /** Breaks something before the flow begins, for `disturb` to mend. */
  readonly before?: (layout: LabLayout) => Promise<Outage>;
  /** Breaks something for a while; the flow passes by `gateway`. */
  readonly disturb: (layout: LabLayout, gateway: LabNode, broken?: Outage) => Promise<void>;
}

const during = async (outage: Outage): Promise<void> => {
  outage.begin();
  await delay(OUTAGE_MS);
  outage.end();
};

const gatewaysOf = (layout: LabLayout, wanted: string): LabNode[] =>
  layout.nodes.filter(({ role, site }) => role === 'gateway' && site === wanted);

/** In the other site, where the flow arrives. */
const farGateway = (layout: LabLayout): Promise<LabNode> => deliveringGateway(gatewaysOf(layout, 's2'));

const CASES: readonly Case[] = [
  { name: 'a gateway is off', runs: 60, disturb: (layout, gateway) => during(powerOff(layout, gateway)) },
  {
    name: 'a gateway is back again',
    runs: 20,
    before: async (layout) => {
      const outage = powerOff(layout, gatewaysOf(layout, 's1')[0]!);
      outage.begin();
      await delay(OUTAGE_MS);
      return outage;
    },
    disturb: async (_layout, _gateway, broken) => {
      broken?.end();
      await delay(OUTAGE_MS);
    },
  },
  {
    name: 'a gateway does not forward',
    runs: 20,
    disturb: (_, gateway) => during(noForwarding(gateway.name)),
  },
  { name: "a gateway's WAN link is cut", runs: 60, disturb: (layout, gateway) => during(cutWan(layout, gateway)) },
  {
    name: 'the link between two gateways is cut',
    runs: 60,
    disturb: async (layout, gateway) => during(cutLink(gateway, await farGateway(layout))),
  },
  {
    name: 'one direction of that link is lost',
    runs: 20,
    disturb: async (layout, gateway) => during(cutLink(await farGateway(layout), gateway, { oneWay: true })),
  },
  {
    name: 'the agents of a gateway and a worker are killed',
    runs: 20,
    disturb: async (layout, gateway) => {
      await killAgent(layout, gateway.name, 'node-dataplane');
      await killAgent(layout, 's1-w1', 'node-dataplane');
    },
  },
  { name: 'the leading controllers are killed', runs: 20, disturb: (layout) => killLeaders(layout) },
  {
    name: 'the API server is away',
    runs: 20,
    seconds: 12,
    disturb: (layout) => withoutApiServer(layout, () => delay(OUTAGE_MS)),
  },
  { name: 'a site is alone, and comes back', runs: 20, disturb: (layout) => during(partition(layout, 's2')) },
  {
    name: 'everything is restarted, one by one',
    runs: 20,
    seconds: 50,
    disturb: (layout) => restartEverything(layout),
  },
];

const percentile = (values: readonly number[], share: number): number => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? 0;
};

const runOnce = async (layout: LabLayout, { before, disturb, seconds = FLOW_SECONDS }: Case): Promise<FlowReport> => {
  await allHealthy(layout, 60_000);
  const broken = await before?.(layout);
  const ends = { from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1'), seconds };
  return await flowDuring(ends, async () => disturb(layout, await busiestGateway(gatewaysOf(layout, 's1')), broken));
};

const main = async ([only = '', count = '']: string[]): Promise<void> => {
  const layout = JSON.parse(readFileSync(join(state, 'layout.json'), 'utf8')) as LabLayout;
  if (layout.options.gateways < 2)
    throw new Error('needs a lab with two gateways a site: tools/lab up --gateways 2 --workers 1');
  await setProbing(layout, PROBE_MS, MULTIPLIER);
  console.log(
    `Probes every ${PROBE_MS} ms, ${MULTIPLIER} lost ones are an outage. Milliseconds without an answer, and datagrams lost.\n`,
  );
  console.log('| | runs | gap p50 | p95 | max | lost p50 | p95 | max | load |\n|---|---|---|---|---|---|---|---|---|');
  for (const each of CASES.filter(({ name }) => name.includes(only))) {
    const reports: FlowReport[] = [];
    for (let run = 0; run < (Number(count) || each.runs); run++) reports.push(await runOnce(layout, each));
    const columns = [reports.map(({ largestGapMillis }) => largestGapMillis), reports.map(({ lost }) => lost)].flatMap(
      (values) => [percentile(values, 0.5), percentile(values, 0.95), Math.max(...values)],
    );
    console.log(`| ${[each.name, reports.length, ...columns, loadavg()[0]!.toFixed(1)].join(' | ')} |`);
  }
};

await main(process.argv.slice(2));
