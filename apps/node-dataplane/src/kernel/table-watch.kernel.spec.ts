import { CONNECTIVITY } from '@unbounded/config/ownership';
import { execFileSync } from 'node:child_process';
import { createNetns, NetlinkError, type Netns } from '@unbounded/netlink';
import { createNftables, type Nftables } from '@unbounded/nftables';
import { createLogger, createMetrics } from '@unbounded/telemetry';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startReconcileLoop } from '../agent/reconcile-loop.ts';
import { planGuardTable } from '../attachment/source-guard/guard-table.plan.ts';
import { planFor } from '../testdata.ts';
import { ensureFirewall } from '../connectivity/kernel/firewall.ts';
import { createDropMetrics } from './drop-metrics.ts';
import { planFirewall } from '../connectivity/kernel/firewall.plan.ts';
import { openConnectivityTable } from '../connectivity/kernel/firewall.testdata.ts';
import { tableSpec } from './section-table.ts';
import { watchTable } from './table-watch.ts';

const AN_HOUR_MS = 3_600_000;
const logger = createLogger({ name: 'test', level: 'silent' });
const plan = planFor('w1');
const guardTable = planGuardTable([]);
const WANTED = tableSpec(CONNECTIVITY, planFirewall(plan, { tunnels: [] }));
let ns: Netns;
let nft: Nftables;
beforeEach(() => {
  ns = createNetns();
  nft = createNftables({ netnsFd: ns.fd });
});
afterEach(() => {
  nft.close();
  ns.close();
});
const realNft = (...argv: string[]): string =>
  execFileSync('nsenter', [`--net=${ns.path}`, 'nft', ...argv], { encoding: 'utf8' });

const start = () => {
  let passes = 0;
  const table = openConnectivityTable({ nft, logger });
  const loop = startReconcileLoop({
    pass: async () => {
      await ensureFirewall({ nft, table, relayWays: () => [] }, plan, { tunnels: [], names: [] });
      passes++;
      if (!(await nft.matches(guardTable))) await nft.replaceTable(guardTable);
      return AN_HOUR_MS;
    },
    quietMs: 10,
    retryMs: AN_HOUR_MS,
    onError: (error) => {
      if (!(error instanceof NetlinkError)) throw error; // of a table that changes as it is read: the change is told of, too
    },
  });
  const watches = [WANTED, guardTable].map((one) =>
    watchTable(nft, one, { onChange: () => loop.trigger(), logger, limit: { burst: 5, everyMs: AN_HOUR_MS } }),
  );
  const stop = async (): Promise<void> => {
    for (const watch of watches) watch[Symbol.dispose]();
    await loop.stop();
  };
  return { passes: () => passes, stop };
};
const stands = async (): Promise<boolean> => (await nft.matches(WANTED)) && (await nft.matches(guardTable));

test.each([
  ['the ruleset is flushed', ['flush', 'ruleset']],
  ['the table is deleted', ['delete', 'table', 'inet', 'unbounded']],
  ['the table of what pods may send is deleted', ['delete', 'table', 'bridge', 'unbounded_pods']],
  ['a chain is flushed', ['flush', 'chain', 'inet', 'unbounded', 'injection_input']],
  ['a set is emptied', ['flush', 'set', 'inet', 'unbounded', 'tunnel_ends_ip']],
])('%s: the table is back long before the next regular pass', async (_, command) => {
  const { stop } = start();
  await vi.waitFor(async () => expect(await stands()).toBe(true), { timeout: 10_000 });
  realNft(...command);
  await vi.waitFor(async () => expect(await stands()).toBe(true), { timeout: 10_000 });
  await stop();
});

test('an agent whose table somebody keeps taking away does not spin', async () => {
  const { passes, stop } = start();
  await vi.waitFor(async () => expect(await stands()).toBe(true), { timeout: 10_000 });
  const end = performance.now() + 1500;
  while (performance.now() < end) {
    realNft('add', 'table', 'inet', 'unbounded');
    realNft('delete', 'table', 'inet', 'unbounded');
    await new Promise((resolve) => void setImmediate(resolve));
  }
  expect(passes()).toBeLessThanOrEqual(1 + 5);
  await stop();
});

test('what was dropped is counted on when the table is written anew', async () => {
  const metrics = createMetrics();
  const table = openConnectivityTable({ nft, drops: createDropMetrics(metrics)(), logger });
  const parts = { nft, table, relayWays: () => [] };
  const pass = () => ensureFirewall(parts, plan, { tunnels: [], names: [] });
  const leak = (): void => {
    for (const argv of ['link add eth0 type dummy', 'link add eth0 type ifb'])
      try {
        execFileSync('nsenter', [`--net=${ns.path}`, 'ip', ...argv.split(' ')], { stdio: 'ignore' });
      } catch {
        continue; // it is there, or the kernel has no devices of this kind
      }
    for (const argv of [
      'link set eth0 up',
      'addr replace 10.1.0.30/24 dev eth0',
      'route replace default via 10.1.0.1 dev eth0',
    ])
      execFileSync('nsenter', [`--net=${ns.path}`, 'ip', ...argv.split(' ')]);
    try {
      execFileSync('nsenter', [`--net=${ns.path}`, 'ping', '-c1', '-W1', '100.66.20.7'], { stdio: 'ignore' });
    } catch {
      return; // nobody answers
    }
  };
  await pass();
  leak();
  await pass();
  realNft('delete', 'table', 'inet', 'unbounded');
  await pass();
  leak();
  await pass();
  expect(await metrics.render()).toContain('unbounded_firewall_dropped_packets_total{reason="overlay_leak"} 2');
});
