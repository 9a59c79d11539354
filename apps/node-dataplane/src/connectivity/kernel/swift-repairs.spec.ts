import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import type { RouteEvent, RouteSpec, RuleSpec } from '@unbounded/netlink';
import { silentLogger as logger } from '@unbounded/telemetry';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { DeviceSpec } from './devices.plan.ts';
import { createSwiftRepairs } from './swift-repairs.ts';

/** What is put back at once, and what is left to the passes, over a kernel that notes what it is asked for. */

const ROUTES: RouteSpec[] = [
  { dst: '100.66.0.0/16', link: 7 },
  { dst: 'fd64::/32', table: 252 },
];
const RULE: RuleSpec = { family: 4, priority: 32_765, table: 252, protocol: ROUTE_PROTOCOL };
const VXLAN: DeviceSpec = { name: 'vxlan0', purpose: 'vxlan', mtuBytes: 1450, arp: false, addresses: [] };

const open = () => {
  const made: unknown[] = [];
  const restored: string[] = [];
  const clock = { ms: 0 };
  const forwarding = { 4: true, 6: true };
  const repairs = createSwiftRepairs({
    net: {
      routes: { apply: async (changes: { value: unknown }[]) => (made.push(...changes.map(({ value }) => value)), []) },
      rules: { create: async (rule: unknown) => void made.push(rule) },
    } as never,
    forward(family) {
      const wasOff = !forwarding[family];
      forwarding[family] = true;
      return wasOff;
    },
    settle: ({ name }) => (made.push(name), [`net.ipv4.conf.${name}.rp_filter`]),
    logger,
    elapsed: () => clock.ms,
    onRestored: (what) => void restored.push(what),
    nameOf: (port) => (port === 712 ? 'systemd-network' : undefined),
  });
  repairs.expect({ routes: ROUTES, rules: [RULE], devices: new Map([[9, VXLAN]]) });
  return { repairs, made, restored, clock, forwarding };
};
const deleted = (subject: 'route' | 'rule', value: object, port = 4711_0000): RouteEvent =>
  ({ subject, change: 'deleted', value: { protocol: ROUTE_PROTOCOL, ...value }, port }) as unknown as RouteEvent;
const netconf = (value: object): RouteEvent => ({ subject: 'netconf', change: 'new', value, port: 0 }) as never;
const FORWARDING_OFF = netconf({ family: 4, link: 'all', forwarding: false });

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('routes and rules that somebody removed go back in one batch, and an Event says who', async () => {
  const { repairs, made, restored } = open();
  for (const route of ROUTES)
    expect(repairs.onEvent(deleted('route', { ...route, table: route.table ?? 254 }))).toBe(true);
  expect(repairs.onEvent(deleted('rule', RULE))).toBe(true);
  expect(made).toEqual([]); // who removes them looks for more
  await vi.advanceTimersByTimeAsync(20);
  expect(made).toEqual([...ROUTES, RULE]);
  expect(restored).toEqual(['route', 'route', 'rule']);
  expect(repairs.takeEvents()).toEqual([
    {
      type: 'Warning',
      reason: 'SettingRestored',
      action: 'RestoreSettings',
      note: 'routes were removed by the netlink port 47110000 and put back (2); rules were removed by the netlink port 47110000 and put back',
    },
  ]);
  expect(repairs.takeEvents()).toEqual([]);
});

test('a process that the agent sees is named', () => {
  const { repairs } = open();
  repairs.onEvent(deleted('rule', RULE, 712));
  expect(repairs.takeEvents()[0]!.note).toBe('rules were removed by systemd-network (pid 712) and put back');
});

test('what no pass wants, what others own, and what went with its device is not put back', async () => {
  const { repairs, made } = open();
  expect(repairs.onEvent(deleted('route', { dst: '100.67.0.0/16', table: 254 }))).toBe(true);
  expect(repairs.onEvent(deleted('route', { dst: '100.66.0.0/16', table: 254 }, 0))).toBe(true);
  expect(repairs.onEvent(deleted('route', { dst: '100.66.0.0/16', table: 254, protocol: 4 }))).toBe(false);
  expect(repairs.onEvent(deleted('rule', { ...RULE, priority: 1 }))).toBe(true);
  await vi.advanceTimersByTimeAsync(100);
  expect(made).toEqual([]);
});

test('a pass that takes a route away is not contradicted: it says first what it wants', async () => {
  const { repairs, made } = open();
  repairs.expect({ routes: ROUTES.slice(1), rules: [], devices: new Map() });
  repairs.onEvent(deleted('route', { ...ROUTES[0]!, table: 254 }));
  repairs.onEvent(deleted('rule', RULE));
  await vi.advanceTimersByTimeAsync(100);
  expect(made).toEqual([]);
});

test('a program that removes for a while is not taken for one that fights', async () => {
  const { repairs, made, clock } = open();
  for (let batch = 0; batch < 40; batch++) {
    repairs.onEvent(deleted('route', { ...ROUTES[0]!, table: 254 }));
    clock.ms += 20;
    await vi.advanceTimersByTimeAsync(20);
  }
  expect(made).toHaveLength(40);
  expect(repairs.problems()).toEqual([]);
});

test('a route of another metric is another route', async () => {
  const { repairs, made } = open();
  repairs.onEvent(deleted('route', { ...ROUTES[0]!, table: 254, metric: 7 }));
  await vi.advanceTimersByTimeAsync(100);
  expect(made).toEqual([]);
});

test('forwarding and settings of our devices are set again, those of others are not', () => {
  const { repairs, made, forwarding } = open();
  forwarding[4] = false;
  expect(repairs.onEvent(FORWARDING_OFF)).toBe(true);
  expect(forwarding[4]).toBe(true);
  repairs.onEvent(netconf({ family: 4, link: 9, rpFilter: 1 }));
  repairs.onEvent(netconf({ family: 4, link: 9, forwarding: false }));
  repairs.onEvent(netconf({ family: 4, link: 9, rpFilter: 2 }));
  repairs.onEvent(netconf({ family: 4, link: 3, rpFilter: 1 }));
  repairs.onEvent(netconf({ family: 4, link: 'default', forwarding: false }));
  expect(made).toEqual(['vxlan0', 'vxlan0']);
  expect(repairs.takeEvents()[0]!.note).toBe(
    'net.ipv4.ip_forward was changed and set again; net.ipv4.conf.vxlan0.rp_filter was changed and set again (2)',
  );
});

test('who changes a setting over and over is reported and not fought; others’ repairs are not delayed', async () => {
  const { repairs, forwarding, made, clock } = open();
  let repaired = 0;
  for (let change = 0; change < 100; change++) {
    clock.ms += 1000;
    forwarding[4] = false;
    repairs.onEvent(FORWARDING_OFF);
    if (forwarding[4]) repaired += 1;
  }
  expect(repaired).toBeGreaterThanOrEqual(10);
  expect(repaired).toBeLessThan(35); // and one in five seconds
  expect(repairs.problems().map(({ reason, message }) => [reason, message.split(':')[0]])).toEqual([
    ['SettingContested', 'net.ipv4.ip_forward'],
  ]);
  repairs.onEvent(deleted('rule', RULE));
  await vi.advanceTimersByTimeAsync(20);
  expect(made).toEqual([RULE]);
  clock.ms += 58_000;
  expect(repairs.problems()).toHaveLength(1);
  clock.ms += 3000;
  expect(repairs.problems()).toEqual([]);
  expect(repairs.onEvent(FORWARDING_OFF)).toBe(true);
});
