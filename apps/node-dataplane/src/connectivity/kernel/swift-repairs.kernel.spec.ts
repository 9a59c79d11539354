import { execFileSync } from 'node:child_process';
import { createNetns, createRouteSocket, type Monitor, type Netns, type RouteSocket } from '@unbounded/netlink';
import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { silentLogger as logger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createSwiftRepairs, type SwiftRepairs } from './swift-repairs.ts';

/** What programs of users take away in a namespace of the test, with no pass at all. */

let ns: Netns;
let net: RouteSocket;
let monitor: Monitor;
let repairs: SwiftRepairs;

const run = (...argv: string[]): string =>
  execFileSync('nsenter', [`--net=${ns.path}`, ...argv], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const sysctl = (key: string, value: string): string => run('sysctl', '-qw', `${key}=${value}`);
const read = (key: string): string => run('sysctl', '-n', key).trim();

beforeEach(async () => {
  ns = createNetns();
  net = createRouteSocket({ netnsFd: ns.fd });
  for (const line of ['link set lo up', 'link add dev0 up type bridge', 'addr add 192.0.2.1/24 dev dev0'])
    run('ip', ...line.split(' '));
  sysctl('net.ipv4.ip_forward', '1');
  sysctl('net.ipv4.conf.dev0.rp_filter', '2');
  const { index } = (await net.links.get('dev0'))!;
  repairs = createSwiftRepairs({
    net,
    // Settings are the namespace's: the agent writes its own.
    forward(family) {
      const key = family === 4 ? 'net.ipv4.ip_forward' : 'net.ipv6.conf.all.forwarding';
      if (read(key) === '1') return false;
      sysctl(key, '1');
      return true;
    },
    settle({ name }) {
      const key = `net.ipv4.conf.${name}.rp_filter`;
      if (read(key) === '2') return [];
      sysctl(key, '2');
      return [key];
    },
    logger,
  });
  const routes = [
    ...Array.from({ length: 300 }, (_, number) => ({
      dst: `100.${64 + (number >> 8)}.${number & 255}.0/24`,
      link: index,
      protocol: ROUTE_PROTOCOL,
    })),
    { dst: 'fd64::/32', table: 252, link: index, protocol: ROUTE_PROTOCOL },
  ];
  const rules = ([4, 6] as const).map((family) => ({
    ...{ family, priority: 32_765, table: 252, protocol: ROUTE_PROTOCOL },
  }));
  await net.routes.apply(routes.map((value) => ({ op: 'create', value })));
  for (const rule of rules) await net.rules.create(rule);
  repairs.expect({ routes, rules, devices: new Map([[index, { name: 'dev0' } as never]]) });
  monitor = net.monitor(['route', 'rule', 'netconf'], {
    onEvent: (event) => void repairs.onEvent(event),
    onResync: () => undefined,
  });
});
afterEach(() => {
  monitor.close();
  net.close();
  ns.close();
});

const routes = (): string =>
  run('ip', 'route', 'show', 'table', 'all', 'proto', String(ROUTE_PROTOCOL)) +
  run('ip', '-6', 'route', 'show', 'table', 'all', 'proto', String(ROUTE_PROTOCOL));
const rules = (): string => run('ip', 'rule') + run('ip', '-6', 'rule');
const note = (): string =>
  repairs
    .takeEvents()
    .map((event) => event.note)
    .join();

test('flushed routes of both families are put back', async () => {
  const before = routes();
  for (const family of ['-4', '-6'])
    run('ip', family, 'route', 'flush', 'table', 'all', 'proto', String(ROUTE_PROTOCOL));
  await until('they are back', () => routes() === before, 2000);
  expect(note()).toMatch(/^routes were removed .* and put back \(30\d\)/);
});

test('flushed rules are put back', async () => {
  const before = rules()
    .split('\n')
    .filter((line) => line.includes('252'));
  expect(before).toHaveLength(2);
  for (const family of ['-4', '-6']) run('ip', family, 'rule', 'flush');
  await until('they are back', () => before.every((line) => rules().includes(line)), 2000);
  expect(note()).toContain('rules were removed');
});

test('forwarding that is turned off is on again, and a device’s setting as it was', async () => {
  sysctl('net.ipv4.ip_forward', '0');
  await until('it is on', () => read('net.ipv4.ip_forward') === '1', 2000);
  sysctl('net.ipv4.conf.dev0.rp_filter', '1');
  await until('it is loose', () => read('net.ipv4.conf.dev0.rp_filter') === '2', 2000);
  expect(note()).toBe(
    'net.ipv4.ip_forward was changed and set again; net.ipv4.conf.dev0.rp_filter was changed and set again',
  );
});

test('a device that goes takes its routes along, and nobody tries to put them back', async () => {
  run('ip', 'link', 'del', 'dev0');
  await until('they are gone', () => routes() === '', 2000);
  expect(note()).toBe('');
});
