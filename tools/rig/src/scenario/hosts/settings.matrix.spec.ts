import { setTimeout as delay } from 'node:timers/promises';
import { ROUTE_TABLE } from '@unbounded/config/ownership';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { layoutOf } from '../../layout/layout.ts';
import { DATAPLANES } from '../../layout/options.ts';
import { onNode } from '../../node/node.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { lostMsAfter } from '../flow-losses.ts';
import { flowDuring, podOn, timeUntil } from '../scenario.ts';

/** What other programs change in the kernel of a gateway and of a worker while 1,000 packets a second pass. */

const REPETITIONS = 20;
/** Between them, milliseconds: the agent must not take them for a fight. */
const EVERY_MS = 3000;
const LONGEST_GAP_MS = 250;

const sh = (node: string, script: string): void => void onNode(node, 'sh', '-ec', script);

const DISTURBANCES: Readonly<Record<string, (node: string) => void>> = {
  'ip_forward is 0': (node) => sh(node, 'sysctl -qw net.ipv4.ip_forward=0'),
  'rp_filter is 1, of all devices and each': (node) =>
    sh(node, 'for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 1 >$file; done'),
  // `ip route flush` itself cannot take away routes with next-hop objects.
  'routes of protocol 117 are deleted': (node) =>
    sh(
      node,
      `for table in main ${ROUTE_TABLE}; do ip route show table $table proto 117 |
        sed -E "s/^((unreachable|throw|blackhole) )?([^ ]+).*/route del \\1\\3 table $table proto 117/"; done | ip -batch -`,
    ),
  // The netlink calls of systemd-networkd at a restart: rules of protocols that it does not know, one by one.
  'rules of protocol 117 are deleted': (node) => sh(node, 'ip rule flush protocol 117; ip -6 rule flush protocol 117'),
};

const PER_SECOND = 1000;

describe.each(DATAPLANES)('data path %s', (dataplane) => {
  const layout = layoutOf({ dataplane, workers: 1 });
  beforeAll(async () => {
    await down();
    await up(layout);
  }, 300_000);
  afterAll(down, 60_000);

  const rows = Object.entries(DISTURBANCES).flatMap(([what, disturb]) =>
    (['s1-w1', 's1-g1'] as const).map((node) => [what, node, disturb] as const),
  );
  test.each(rows)('%s on %s: packets pass again within 250 ms', { timeout: 300_000 }, async (what, node, disturb) => {
    const ends = { from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1') };
    const moments: number[] = [];
    const report = await flowDuring(
      { ...ends, perSecond: PER_SECOND, seconds: 10 + (REPETITIONS * EVERY_MS) / 1000 },
      async () => {
        for (let count = 0; count < REPETITIONS; count++) {
          moments.push(Date.now());
          disturb(node);
          await delay(EVERY_MS);
        }
      },
    );
    const gaps = lostMsAfter(report, moments, PER_SECOND).sort((a, b) => a - b);
    const p95 = gaps[Math.ceil(REPETITIONS * 0.95) - 1]!;
    console.log(`${dataplane}, ${what} on ${node}: gaps of ${gaps.join(', ')} ms; ${report.lost} lost`);
    expect(p95).toBeLessThanOrEqual(LONGEST_GAP_MS);
    await timeUntil(
      'the settings are as they were',
      () => onNode(node, 'sysctl', '-n', 'net.ipv4.ip_forward').trim() === '1',
      6000,
    );
  });
});
