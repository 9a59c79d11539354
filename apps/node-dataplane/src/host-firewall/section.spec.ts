import { createMetrics, silentLogger as logger } from '@unbounded/telemetry';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { BoundaryAdditions } from '../kernel/boundary-additions.ts';
import { createSharedTraffic } from '../kernel/overlay-traffic.ts';
import type { SectionContext, VersionedPlan } from '../section.port.ts';
import type { Iptables } from './iptables/iptables.ts';
import { parseFilterTable } from './iptables/iptables-save.codec.ts';
import { KEPT_MS } from './iptables/former-refusals.ts';
import type { HostFirewallMode } from './host-firewall.port.ts';
import { hostFirewall } from './section.ts';

/** The section over a filter table that a test changes; what it says of the marks, in order. */

const DROPS = ':FORWARD DROP [0:0]';
const ACCEPTS = ':FORWARD ACCEPT [0:0]';
const OPEN = `${DROPS}\n-A FORWARD -m mark --mark 0x80/0x80 -m comment --comment "unbounded: belongs to the overlay" -j ACCEPT`;

const openSection = async (mode: HostFirewallMode, { chains, kept }: { chains: string; kept?: VersionedPlan }) => {
  const state = { chains: chains as string | Error, kept, marks: [] as unknown[], changes: 0, elapsedMs: 0 };
  let asked = 0;
  const metrics = createMetrics();
  const heard: (() => void)[] = [];
  /** The kernel tells of it. */
  const change = (chains: string | Error): void => {
    state.chains = chains;
    for (const onChange of heard) onChange();
    vi.advanceTimersByTime(20);
  };
  const iptables: Iptables = {
    find: async () => [{ family: 'ip', backend: 'nft' }],
    read: async () => {
      if (state.chains instanceof Error) throw state.chains;
      return parseFilterTable(`*filter\n${state.chains}\nCOMMIT\n`)!;
    },
    change: async () => void state.changes++,
  };
  const context = {
    nft: {
      monitor: (_family: string, _table: string, { onChange }: { onChange: () => void }) => {
        heard.push(onChange);
        return { close: () => undefined };
      },
    },
    boundary: { set: ({ marksPassing }: BoundaryAdditions) => void state.marks.push(marksPassing) },
    traffic: createSharedTraffic(),
    kept: { read: () => state.kept, write: (plan: VersionedPlan) => void (state.kept = plan) },
    trigger: () => void (asked += 1),
    logger,
    metrics,
  } as unknown as SectionContext;
  return {
    state,
    metrics,
    change,
    asked: () => asked,
    heardOf: () => heard[0]!(),
    section: await hostFirewall(
      { hostFirewall: mode, dbusSocket: '/nowhere' },
      () => iptables,
      () => state.elapsedMs,
    ).open(context),
  };
};

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

test('the marks are there before the first pass, if the agent before had them: its rule is in force', async () => {
  const first = await openSection('Accept', { chains: DROPS });
  await first.section.pass();
  expect(first.state.marks).toEqual([false, true]);
  expect(await first.metrics.render()).toContain('unbounded_host_firewall_chains{overlay="accepted"} 1');
  const next = await openSection('Accept', { chains: OPEN, kept: first.state.kept! });
  expect(next.state.marks).toEqual([true]);
  await next.section.pass();
  expect([next.state.marks, next.state.changes]).toEqual([[true], 0]);
});

test('what is kept of a later version, or is no plan of ours, counts as nothing', async () => {
  for (const kept of [
    { version: 2, plan: { marksPassing: true } },
    { version: 1, plan: null },
    { version: 1, plan: { marksPassing: 'yes' } },
  ])
    expect((await openSection('Accept', { chains: OPEN, kept })).state.marks).toEqual([false]);
});

test('a table that cannot be read is reported, and the marks stay', async () => {
  const { state, change, section } = await openSection('Accept', { chains: DROPS });
  await section.pass();
  change(new Error('iptables-nft-save: no memory'));
  const { report } = await section.pass();
  expect(report.problems.map(({ reason }) => reason)).toEqual(['HostFirewallNotManaged']);
  expect(state.marks).toEqual([false, true]);
});

test('a firewall that stops dropping for good ends the marks after a minute', async () => {
  const { state, change, section } = await openSection('Accept', { chains: DROPS });
  await section.pass();
  change(ACCEPTS);
  expect((await section.pass()).nextPassMs).toBe(5000);
  state.elapsedMs += KEPT_MS - 1;
  await section.pass();
  expect(state.marks).toEqual([false, true]);
  state.elapsedMs += 1;
  await section.pass();
  expect(state.marks).toEqual([false, true, false]);
});

test('a firewall that is reloaded, and so lets everything pass for a moment, finds our rule as it was', async () => {
  const { state, change, section } = await openSection('Accept', { chains: DROPS });
  await section.pass();
  const { changes } = state;
  for (let reload = 0; reload < 3; reload++) {
    change(OPEN.replace('DROP', 'ACCEPT'));
    await section.pass();
    state.elapsedMs += 2000;
    change(OPEN);
    await section.pass();
    state.elapsedMs += KEPT_MS - 1000;
  }
  expect([state.changes, state.marks]).toEqual([changes, [false, true]]);
  change(ACCEPTS); // without our rule: it is there again before anything is dropped
  await section.pass();
  expect(state.changes).toBe(changes + 1);
});

test('a firewall that the operator wants untouched has no rule and no marks of ours', async () => {
  const report = await openSection('Report', { chains: OPEN, kept: { version: 1, plan: { marksPassing: true } } });
  const { problems } = (await report.section.pass()).report;
  expect(problems.map(({ reason }) => reason)).toEqual(['HostFirewallBlocks']);
  expect([report.state.marks, report.state.changes]).toEqual([[false], 1]);
  expect(await report.metrics.render()).toContain('unbounded_host_firewall_chains{overlay="refused"} 1');
});

test('at rest nothing is read; what changes is looked at, also while somebody looks', async () => {
  const { state, change, section } = await openSection('Accept', { chains: DROPS });
  await section.pass();
  state.chains = new Error('nobody may read now');
  const { nextPassMs, report } = await section.pass();
  expect([report.problems, nextPassMs]).toEqual([[], expect.any(Number)]);
  expect(nextPassMs).toBeGreaterThan(4000);
  change(DROPS);
  const looking = section.pass();
  change(new Error('read before or after: it is looked at once more'));
  await looking;
  expect((await section.pass()).report.problems).toHaveLength(1);
});

test('what fails is tried again soon, and ever more rarely', async () => {
  const { section } = await openSection('Accept', { chains: '' });
  const broken = await openSection('Accept', { chains: DROPS });
  broken.change(new Error('iptables-nft-save is not installed'));
  const waits: number[] = [];
  for (let attempt = 0; attempt < 4; attempt++) {
    waits.push(Math.round((await broken.section.pass()).nextPassMs / 1000));
    broken.change(new Error('iptables-nft-save is not installed'));
  }
  expect(waits).toEqual([1, 2, 4, 5]); // and no pass is later than 5 s: the tables are looked for
  await section.stop();
});

test('a firewall that comes up in many transactions is looked at once', async () => {
  const { asked, heardOf, section } = await openSection('Accept', { chains: DROPS });
  await section.pass();
  for (let transaction = 0; transaction < 100; transaction++) heardOf();
  vi.advanceTimersByTime(20);
  expect(asked()).toBe(1);
});
