import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { metricsOn } from '../../apps/agent-state.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { layoutOf } from '../../layout/layout.ts';
import { DATAPLANES } from '../../layout/options.ts';
import { onNode, tryOnNode } from '../../node/node.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { lostMsAfter } from '../flow-losses.ts';
import { allHealthy, noForwarding, setProbing } from '../outages.ts';
import { flowDuring, nodeCondition, podOn, timeUntil, timeUntilMatch } from '../scenario.ts';

/** Nodes whose agents live while an administrator's table drops what they forward. */

const REPETITIONS = 20;
/** Few enough that the machine has time for everything: what is looked for is the network's time. */
const FLOWS = 6;
const PER_SECOND = 100;
const LASTS_MS = 3000;
const [INTERVAL_MS, MULTIPLIER, LONGEST_GAP_MS] = [100, 3, 500];
const TOLD_WITHIN_MS = 15_000;
/** Of a gateway that has ceased so often, gateway-health takes over at most one change a minute (stated-forwarding.ts). */
const POOL_TOLD_WITHIN_MS = 75_000;

const block = (node: string): void => noForwarding(node).begin();
const unblock = (node: string): void => noForwarding(node).end();

/**
 * Turns that meet a flow, at least. While a next-hop group has one member alone, Linux counts no bucket of it as used (`ip nexthop bucket`):
 * with the netlink data path, where all flows between two pods have one bucket, they go back to the other gateway when it returns. Every
 * second turn meets none where that is the same gateway for both directions.
 */
const LEAST_MET = { ebpf: REPETITIONS / 2 + 1, netlink: REPETITIONS / 2 } as const;

/** By turns. */
const GATEWAYS = ['s1-g1', 's1-g2'] as const;

describe.each(DATAPLANES)('data path %s', (dataplane) => {
  const layout = layoutOf({ dataplane, gateways: 2, workers: 1 });
  /** What the Node says: of its own forwarding, and of everything. */
  const conditions = async (node: string): Promise<string> => {
    const both = await Promise.all(
      ['UnboundedForwarding', 'UnboundedNetworkDegraded'].map((type) => nodeCondition(layout, node, type)),
    );
    return both.map((one) => `${one?.status} ${one?.reason} ${one?.message}`).join('\n');
  };
  const tells = (node: string, text: RegExp): Promise<number> =>
    timeUntilMatch(`${node} tells ${text}`, () => conditions(node), text, TOLD_WITHIN_MS);
  const isWell = (node: string): Promise<number> =>
    timeUntilMatch(`${node} is well`, () => conditions(node), /^True EchoesReturn .*\nFalse InSync /, TOLD_WITHIN_MS);
  const poolSays = (text: RegExp) => async (): Promise<boolean> => {
    const { items } = JSON.parse(await kubectl(layout, ['get', 'gatewaypools', '-o', 'json'])) as {
      items: { status?: { conditions?: { type: string; status: string; reason: string; message: string }[] } }[];
    };
    const all = items.flatMap(({ status }) => status?.conditions ?? []);
    return all.some(
      ({ type, status, reason, message }) =>
        type === 'GatewaysForwarding' && text.test(`${status} ${reason} ${message}`),
    );
  };
  const across = async () => ({ from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1') });

  beforeAll(async () => {
    await down();
    await up(layout);
    await setProbing(layout, INTERVAL_MS, MULTIPLIER);
    await allHealthy(layout, 60_000);
  }, 300_000);
  afterAll(down, 60_000);

  test(
    'one of two gateways: flows go by the other within the detection time, and none loses a packet as it comes back',
    { timeout: 300_000 },
    async () => {
      const ends = { ...(await across()), perSecond: PER_SECOND, seconds: 10 + (REPETITIONS * 2 * LASTS_MS) / 1000 };
      const moments: number[] = []; // unix time, milliseconds: one ceases to forward, it is back, and so on
      const disturb = async (): Promise<void> => {
        for (let count = 0; count < REPETITIONS; count++) {
          const gateway = GATEWAYS[count % GATEWAYS.length]!;
          for (const change of [block, unblock]) {
            moments.push(Date.now());
            change(gateway);
            await delay(LASTS_MS);
          }
        }
      };
      const reports = await Promise.all(
        Array.from({ length: FLOWS }, (_, index) => flowDuring(ends, index === 0 ? disturb : async () => undefined)),
      );
      const lost = reports.map((report) => lostMsAfter(report, moments, PER_SECOND));
      const worst = moments.map((_, index) => Math.max(...lost.map((ofFlow) => ofFlow[index]!)));
      const [gaps, back] = [0, 1].map((parity) =>
        worst.filter((_, index) => index % 2 === parity).sort((a, b) => a - b),
      ) as [number[], number[]];
      console.log(
        `${dataplane}: gaps of ${gaps.join(', ')} ms when it ceases to forward, ${back.join(', ')} when it is back`,
      );
      if (back.some((ms) => ms > 0)) console.log(JSON.stringify({ moments, reports }));
      expect(gaps[Math.ceil(REPETITIONS * 0.95) - 1]!).toBeLessThanOrEqual(LONGEST_GAP_MS);
      expect(gaps.filter((ms) => ms > 0).length).toBeGreaterThanOrEqual(LEAST_MET[dataplane]); // flows passed them
      expect(Math.max(...back)).toBe(0);
    },
  );

  test(
    'one of two gateways: its condition, an Event and a metric name table, chain and rule; its peers name it',
    { timeout: 240_000 },
    async () => {
      block('s1-g1');
      await tells(
        's1-g1',
        /HostFirewallBlocks.*rule \d+ \("no routing"\) in chain forward of nftables table inet admin/,
      );
      await tells('s1-w1', /True GatewayNotForwarding .*s1-g1/);
      const metrics = (): string => metricsOn('s1-g1');
      await expect.poll(metrics).toMatch(/^unbounded_forwarding_blocked\{.*chain="forward".*\} 1$/m);
      const events = () => kubectl(layout, ['get', 'events', '-A', '--field-selector=involvedObject.name=s1-g1']);
      await expect.poll(events).toMatch(/HostFirewallBlocks.*inet admin/);
      await tells('s1-g2', /^True EchoesReturn/); // the test before has it cease often
      await timeUntil(
        'the pool says so',
        poolSays(/False NotForwarding .*s1-g1 \(HostFirewallBlocks\)/),
        POOL_TOLD_WITHIN_MS,
      );
      unblock('s1-g1');
      for (const node of ['s1-g1', 's1-w1']) await isWell(node);
      const series = [/^unbounded_health_peers/m, /^unbounded_forwarding_blocked\{.*\} 1$/m];
      await expect.poll(() => series.map((one) => one.test(metrics()))).toEqual([true, false]);
    },
  );

  test('the command of the condition lets packets pass', { timeout: 120_000 }, async () => {
    block('s1-g1');
    await tells('s1-g1', /sees what is forwarded: nft '/);
    const command = /sees what is forwarded: (nft '[^']+')/.exec(await conditions('s1-g1'))![1]!;
    onNode('s1-g1', 'sh', '-c', command);
    for (const node of ['s1-g1', 's1-w1']) await isWell(node);
    expect(onNode('s1-g1', 'nft', 'list table inet admin')).toMatch(/accept\n.*drop/);
    unblock('s1-g1');
  });

  test(
    'all gateways of a site: those that were lost last stay in use, and all say so',
    { timeout: 120_000 },
    async () => {
      for (const node of ['s1-g1', 's1-g2']) block(node);
      for (const node of ['s1-g1', 's1-g2']) await tells(node, /False HostFirewallBlocks .*table inet admin/);
      await tells('s1-w1', /False NotForwarding/);
      for (const node of ['s1-g1', 's1-g2']) unblock(node);
      // Nobody has to be put back into a group before packets pass.
      const { lost } = await flowDuring({ ...(await across()), seconds: 5 }, async () => undefined);
      expect(lost).toBe(0);
      for (const node of ['s1-g1', 's1-g2', 's1-w1']) await isWell(node);
    },
  );

  test(
    'a worker: its condition names what drops its packets, and no gateway is given up',
    { timeout: 120_000 },
    async () => {
      block('s1-w1');
      await tells('s1-w1', /False HostFirewallBlocks .*table inet admin/);
      for (const node of ['s1-g1', 's1-g2']) expect(await conditions(node)).toMatch(/^True EchoesReturn/);
      unblock('s1-w1');
      await isWell('s1-w1');
      expect(tryOnNode('s1-w1', 'nft', 'list tables')).not.toContain('unbounded_trace');
    },
  );
});
