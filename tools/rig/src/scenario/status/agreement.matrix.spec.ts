import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { ClusterView, NodeReport } from '@unbounded/status';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { metricsOn, peerStates } from '../../apps/agent-state.ts';
import { layoutOf } from '../../layout/layout.ts';
import { openDashboard, type OpenDashboard, showView, tableOn } from '../../status/page.ts';
import { createViewer, type Viewer } from '../../status/viewer.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { allHealthy, blockUdp, cutLink, cutWan, noForwarding, type Outage, powerOff } from '../outages.ts';
import { killAgent, timeUntil } from '../scenario.ts';

/** The page, the view, the reports and the agents' own metrics have the same while the lab is disturbed, also by a relay for WireGuard. */

const layout = layoutOf({ gateways: 2, workers: 1, blockUdp: 'none' });
const MOMENTS = 20;
/** A report is pushed within 10 s and composed into the view within 3 s; that of a node that is off counts for 25 s. */
const AGREE_MS = 40_000;

let viewer: Viewer;
let dashboard: OpenDashboard | undefined;
beforeAll(async () => {
  await down();
  await up(layout);
  viewer = await createViewer(layout);
  dashboard = await openDashboard(layout);
  await showView(dashboard.page, '#/nodes', 'Nodes');
}, 300_000);
afterAll(async () => {
  await dashboard?.[Symbol.asyncDispose]();
  await down();
}, 60_000);

/** The same sequence of disturbances at each run: a linear congruential generator (Numerical Recipes). */
const createChoice = (seed: number) => {
  let state = seed;
  return <T>(from: readonly T[]): T => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return from[Math.floor((state / 2 ** 32) * from.length)]!;
  };
};
const choose = createChoice(34);

const gateways = layout.nodes.filter(({ role }) => role === 'gateway');
const outages: readonly (() => Outage)[] = [
  () => powerOff(layout, choose(gateways)),
  () => cutWan(layout, choose(gateways)),
  () => noForwarding(choose(gateways).name),
  () => cutLink(gateways[0]!, gateways.at(-1)!),
  () => blockUdp('s2'),
];

const disturb = async (): Promise<Outage | undefined> => {
  if (choose([true, false, false])) {
    await killAgent(layout, choose(layout.nodes).name, 'node-dataplane');
    return undefined;
  }
  const outage = choose(outages)();
  outage.begin();
  return outage;
};

const dropsOf = (node: string): Record<string, number> =>
  Object.fromEntries(
    [...metricsOn(node).matchAll(/^unbounded_firewall_dropped_packets_total\{reason="(\w+)"\} (\d+)/gm)]
      .map(([, reason = '', count]) => [reason, Number(count)] as const)
      .filter(([, count]) => count > 0),
  );

const healthOf = ({ connectivity }: NodeReport): Record<string, number> => {
  const states: Record<string, number> = {};
  for (const { health } of Object.values(connectivity?.peers ?? {}))
    for (const { state } of [health.ipv4, health.ipv6].filter((family) => family !== undefined))
      states[state] = (states[state] ?? 0) + 1;
  return states;
};
const withoutNone = (counts: Record<string, number>): Record<string, number> =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));

/** Relayed sessions by a node's metrics. */
const relayedOn = (node: string): number =>
  Number(/^unbounded_wireguard_peer_paths\{path="relay"\} (\d+)/m.exec(metricsOn(node))?.[1] ?? 0);

interface Read {
  /** Of the node's metrics, before the report. */
  readonly states: Record<string, number>;
  readonly drops: Record<string, number>;
  readonly report: NodeReport | undefined;
}

/** Of all nodes. @throws when the aggregator is away, or asked too often */
const readNodes = async (): Promise<ReadonlyMap<string, Read>> => {
  const names = layout.nodes.map(({ name }) => name);
  const metrics = names.map((name) => ({ states: withoutNone(peerStates(name)), drops: dropsOf(name) }));
  const reports = await viewer.reports(names);
  return new Map(names.map((name, index) => [name, { ...metrics[index]!, report: reports.get(name) }]));
};

/** Where a node that reports differs from its metrics; undefined: nowhere. */
const differenceOf = (node: string, { nodes }: ClusterView, { states, drops, report }: Read): string | undefined => {
  if (nodes[node]?.source !== 'report') return undefined;
  if (!report) return `${node}: its report is not there`;
  const reported = healthOf(report);
  if (!isDeepStrictEqual(reported, states))
    return `${node}: peers by the report ${JSON.stringify(reported)}, by metrics ${JSON.stringify(states)}`;
  // Counters go on while a report is on its way.
  const ahead = Object.entries(report.drops).find(([reason, count]) => count > (drops[reason] ?? 0));
  if (ahead) return `${node}: ${ahead[0]}: ${ahead[1]} drops by the report, ${drops[ahead[0]] ?? 0} by metrics`;
  const { Healthy = 0, Degraded = 0 } = reported;
  const relayed = relayedOn(node);
  if (nodes[node].peers?.relayed !== relayed)
    return `${node}: relayed peers by the view ${nodes[node].peers?.relayed}, by metrics ${relayed}`;
  // One family: a peer is healthy when its only probe is answered.
  const shown = nodes[node].peers?.healthy;
  return shown === Healthy + Degraded
    ? undefined
    : `${node}: view ${shown}, report ${Healthy + Degraded} healthy peers`;
};

/** Where the page differs from the view. */
const pageDifferences = async ({ nodes }: ClusterView): Promise<string[]> => {
  const shown = await tableOn(dashboard!.page);
  return Object.entries(nodes).flatMap(([name, { state, source, peers }]) => {
    const row = shown.get(name);
    // A shape stands before the word.
    const texts = [
      row?.['State']?.split(' ').at(-1),
      row?.['Source']?.split(' ')[0],
      row?.['Peers healthy'],
      row?.['Relayed'],
    ].join();
    const expected = [
      state,
      source,
      peers ? `${peers.healthy} of ${peers.total}` : 'unknown',
      peers?.relayed ?? 'unknown',
    ].join();
    return texts === expected ? [] : [`${name}: page ${texts}, view ${expected}`];
  });
};

test(`page, view, reports and metrics agree at ${MOMENTS} moments of a disturbed lab`, async () => {
  let relayed = 0;
  const agreeAt = async (moment: string): Promise<void> => {
    let differences: (string | undefined)[] = [];
    const agree = async (): Promise<boolean> => {
      const view = await viewer.view().catch(() => undefined);
      const read = await readNodes().catch(() => undefined);
      if (!view || !read) return false;
      const found = [...read].map(([name, one]) => differenceOf(name, view, one));
      relayed = Math.max(relayed, ...Object.values(view.nodes).map(({ peers }) => peers?.relayed ?? 0));
      differences = [...found.filter((one) => one !== undefined), ...(await pageDifferences(view))];
      return differences.length === 0;
    };
    await timeUntil(moment, agree, AGREE_MS).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}: ${differences.join('; ')}`);
    });
  };
  for (let moment = 0; moment < MOMENTS; moment++) {
    const outage = await disturb();
    await delay(choose([500, 2000, 4000]));
    await agreeAt(`moment ${moment}`);
    outage?.end();
    if (moment % 5 === 4) await allHealthy(layout, 60_000);
  }
  expect(await allHealthy(layout, 60_000)).toBeGreaterThanOrEqual(0);
  // Those moments may be over before a path is lost.
  const outage = blockUdp('s2');
  outage.begin();
  await timeUntil('paths are relayed', () => layout.nodes.some(({ name }) => relayedOn(name) > 0), 60_000);
  await agreeAt('the relay');
  outage.end();
  expect(relayed).toBeGreaterThan(0);
  expect(dashboard!.complaints()).toEqual([]);
}, 1_800_000);
