import { execFileSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { createNetns, createRouteSocket, type Netns, type RouteSocket } from '@unbounded/netlink';
import { createNftables, type Nftables, type SetSpec } from '@unbounded/nftables';
import { createMetrics, silentLogger as logger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createSectionTables } from '../agent/section-tables.ts';
import { removeUnlisted } from '../agent/unlisted.ts';
import { type BaseChain, baseOf, CONNECTIVITY_CHAINS } from './base-chains.ts';
import { createDropMetrics } from './drop-metrics.ts';
import type { SectionTable, TableContent } from './section-table.ts';

/** Tables of two sections in a network namespace of the test. */

const EGRESS_INPUT: BaseChain = { family: 'inet', name: 'input', type: 'filter', hook: 'input', priority: -7 };
const TYPES = {
  connectivity: { name: 'connectivity', baseChains: Object.values(CONNECTIVITY_CHAINS) },
  egress: { name: 'egress', baseChains: [EGRESS_INPUT] },
} as const;

let ns: Netns;
let nft: Nftables;
let changes: string[];
let metrics: ReturnType<typeof createMetrics>;
const ends: Disposable[] = [];

/** As a process has them: another call is the next process. */
const openTables = (limit?: string): Readonly<Record<keyof typeof TYPES, SectionTable>> => {
  const newDrops = createDropMetrics((metrics = createMetrics()));
  const open = (name: keyof typeof TYPES): SectionTable => {
    const onChange = (): void => void changes.push(name);
    const tables = createSectionTables(TYPES[name], {
      nft: limit === name ? refusing() : nft,
      newDrops,
      onChange,
      logger,
    });
    ends.push(tables);
    return tables.of('inet');
  };
  return { connectivity: open('connectivity'), egress: open('egress') };
};
/** A kernel that has not the module, or no memory. */
const refusing = (): Nftables => ({ ...nft, replaceTable: async () => Promise.reject(new Error('ENOMEM')) });

beforeEach(() => {
  ns = createNetns();
  nft = createNftables({ netnsFd: ns.fd });
  changes = [];
});
afterEach(() => {
  for (const end of ends.splice(0)) end[Symbol.dispose]();
  nft.close();
  ns.close();
});
const run = (...argv: string[]): string =>
  execFileSync('nsenter', [`--net=${ns.path}`, ...argv], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
/** '' when it is not there. */
const listTable = (name: string): string => {
  try {
    return run('nft', '-s', 'list', 'table', 'inet', name);
  } catch {
    return '';
  }
};
const ruleset = (): string => run('nft', '-s', 'list', 'ruleset');

const leaks = (comment = 'now'): TableContent => ({
  drops: ['overlay_leak'],
  chains: [
    {
      name: 'leaving',
      base: baseOf(CONNECTIVITY_CHAINS.leaving),
      rules: [
        {
          comment,
          expressions: [
            { match: 'payload', field: 'ip.daddr', op: '==', value: '127.0.0.66' },
            { do: 'counter', name: 'overlay_leak' },
            { do: 'drop' },
          ],
        },
      ],
    },
  ],
});
const granted: SetSpec = { name: 'granted', type: 'ipv4', elements: [], timed: { maxElements: 100 } };
const egress = (comment = 'now'): TableContent => ({
  sets: [granted],
  counters: ['seen'],
  chains: [
    {
      name: 'input',
      base: baseOf(EGRESS_INPUT),
      rules: [
        {
          comment,
          expressions: [
            { match: 'set', field: 'ip.saddr', op: '==', set: 'granted' },
            { do: 'counter', name: 'seen' },
          ],
        },
      ],
    },
  ],
});

test('a table that the kernel refuses leaves the former one in force, also that of a former process', async () => {
  const before = openTables();
  expect(await before.connectivity.replace(leaks('of the former version'))).toEqual({ state: 'inSync' });
  const after = openTables('connectivity');
  expect(await after.connectivity.replace(leaks())).toMatchObject({ state: 'outdated', error: { message: 'ENOMEM' } });
  expect(await after.egress.replace(egress())).toEqual({ state: 'inSync' });
  expect(await after.egress.replace(egress('another'))).toEqual({ state: 'inSync' });
  expect(ruleset()).toContain('of the former version');
  expect(await after.connectivity.replace(leaks())).toMatchObject({ state: 'outdated' });
});

test('a section that writes its table first leaves that of one that has no plan yet', async () => {
  await openTables().connectivity.replace(leaks());
  const before = listTable('unbounded');
  await openTables().egress.replace(egress());
  expect(listTable('unbounded')).toBe(before);
});

test('a section that does not open after a restart keeps its rules, whatever the others write', async () => {
  await openTables().egress.replace(egress());
  const before = listTable('unbounded_egress');
  const { connectivity } = openTables();
  for (const comment of ['one', 'two']) await connectivity.replace(leaks(comment));
  expect(before).toContain('@granted');
  expect(listTable('unbounded_egress')).toBe(before);
});

test('while the kernel refuses the next table, the one that it took is repaired', async () => {
  const { egress: table } = openTables();
  await table.replace(egress());
  const before = ruleset();
  run('nft', 'flush', 'ruleset');
  expect(await table.replace({ sets: [{ ...granted, name: 'x'.repeat(300) }], chains: [] })).toMatchObject({
    state: 'outdated',
  });
  expect(ruleset()).toBe(before);
});

test('a table that was never taken is missing', async () => {
  const { connectivity } = openTables('connectivity');
  expect(await connectivity.replace(leaks())).toMatchObject({ state: 'missing' });
});

test('a base chain that is not registered as it is is refused, and the former table stays', async () => {
  const { egress: table } = openTables();
  await table.replace(egress());
  const elsewhere = {
    ...egress(),
    chains: [{ name: 'input', base: { ...baseOf(EGRESS_INPUT), priority: 0 }, rules: [] }],
  };
  const { state, error } = await table.replace(elsewhere);
  expect(state).toBe('outdated');
  expect(error?.message).toBe(
    'chain input of table inet unbounded_egress at input 0 must be one of the base chains of its section',
  );
});

test('elements that come one by one stay while others write, and while the same table is asked for again', async () => {
  const { connectivity, egress: table } = openTables();
  await table.replace(egress());
  await table.changeElements({ add: [{ ...granted, elements: ['192.0.2.7'], timeoutMs: 60_000 }] });
  await connectivity.replace(leaks());
  expect(await table.replace(egress())).toEqual({ state: 'inSync' });
  expect(ruleset()).toContain('elements = { 192.0.2.7 timeout 1m');
});

test('a change of a table is told to its section alone, however often another table changes', async () => {
  const { connectivity, egress: table } = openTables();
  await connectivity.replace(leaks());
  await table.replace(egress());
  await until('both are told', () => new Set(changes).size === 2);
  await delay(100); // later events of the same transactions
  changes = [];
  // More than the limit of repairs lets through at once.
  for (let count = 0; count < 30; count++)
    await table.changeElements({ add: [{ ...granted, elements: [`192.0.2.${count}`], timeoutMs: 60_000 }] });
  await until('the section is told', () => changes.length > 0);
  expect(new Set(changes)).toEqual(new Set(['egress']));
  changes = [];
  run('nft', 'flush', 'chain', 'inet', 'unbounded', 'leaving');
  await until('it is told at once', () => changes.includes('connectivity'), 1000);
});

test('the metric counts what tables drop, and no other counter', async () => {
  const { connectivity, egress: table } = openTables();
  run('ip', 'link', 'set', 'lo', 'up');
  await connectivity.replace(leaks());
  await table.replace(egress());
  await table.changeElements({ add: [{ ...granted, elements: ['127.0.0.7'], timeoutMs: 60_000 }] });
  run('sh', '-c', 'ping -c2 -i0.2 -W1 127.0.0.66 || true');
  run('ping', '-c1', '-W1', '-I', '127.0.0.7', '127.0.0.8');
  for (const content of [leaks(), leaks('another')]) await connectivity.replace(content);
  await table.replace(egress());
  const text = await metrics.render();
  expect(text).toContain('unbounded_firewall_dropped_packets_total{reason="overlay_leak"} 2');
  expect(run('nft', 'list', 'counter', 'inet', 'unbounded_egress', 'seen')).not.toContain('packets 0');
  expect(text).not.toContain('reason="seen"');
});

test('tables of sections that are no more go, in every family; those of others stay', async () => {
  const { connectivity, egress: table } = openTables();
  await connectivity.replace(leaks());
  await table.replace(egress());
  for (const argv of ['bridge unbounded_pods', 'bridge unbounded_egress', 'ip unboundedly', 'inet others'])
    run('nft', 'add', 'table', ...argv.split(' '));
  const net: RouteSocket = createRouteSocket({ netnsFd: ns.fd });
  const lines: string[] = [];
  await removeUnlisted({ net, nft }, [TYPES.connectivity], (line) => lines.push(line));
  net.close();
  expect(lines.sort()).toEqual([
    'removing nftables table bridge unbounded_egress',
    'removing nftables table inet unbounded_egress',
  ]);
  const left = (await nft.listTables()).map(({ family, name }) => `${family} ${name}`);
  expect(left.sort()).toEqual(['bridge unbounded_pods', 'inet others', 'inet unbounded', 'ip unboundedly']);
});

test('devices of sections that are no more go; the port of a pod stays until uninstall', async () => {
  const devices = {
    own: 'unbounded:egress',
    port: 'unbounded:egress:pod',
    listed: 'unbounded:l2:pod',
    other: 'of others',
  };
  for (const [name, alias] of Object.entries(devices)) {
    run('ip', 'link', 'add', name, 'type', 'bridge');
    run('ip', 'link', 'set', name, 'alias', alias);
  }
  const net: RouteSocket = createRouteSocket({ netnsFd: ns.fd });
  const left = async (): Promise<string[]> =>
    (await net.links.list()).map(({ name }) => name).filter((name) => name in devices);
  await removeUnlisted({ net, nft }, [TYPES.connectivity, { name: 'l2' }], () => undefined);
  expect((await left()).sort()).toEqual(['listed', 'other', 'port']);
  await removeUnlisted({ net, nft }, [], () => undefined);
  expect(await left()).toEqual(['other']);
  net.close();
});
