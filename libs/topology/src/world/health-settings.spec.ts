import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DEFAULT_HEALTH, parseHealth, parseIntervalMs } from './health-settings.ts';
import { findMember, planNode } from '../node.plan.ts';
import { parseWorld } from './parse-world.ts';
import { cluster } from '../testdata.ts';
import type { TopologyObjects } from './world.ts';
import type { Problem } from './problem.ts';

test.each([
  [300, 300],
  ['300', 300],
  ['300ms', 300],
  ['1s', 1000],
  ['1.5s', 1500],
  ['1m30s', 90_000],
  ['1h', 3_600_000],
  ['', undefined],
  ['fast', undefined],
  ['1 s', undefined],
  ['-1s', undefined],
  ['0', undefined],
  [0, undefined],
  [Number.NaN, undefined],
])('the interval %j is %j ms', (text, ms) => expect(parseIntervalMs(text)).toBe(ms));

test('any text is an interval or none, and never throws', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.float()), (value) => {
      const ms = parseIntervalMs(value);
      expect(ms === undefined || ms > 0).toBe(true);
    }),
  );
});

describe('the settings of an object', () => {
  const parsed = (spec: Parameters<typeof parseHealth>[1]) => {
    const problems: Problem[] = [];
    return { settings: parseHealth('Site s1', spec, problems), problems };
  };

  test('the slower of both intervals counts, within 10 ms to a minute', () => {
    expect(parsed({ transmitInterval: 100, receiveInterval: '300ms' }).settings?.intervalMs).toBe(300);
    expect(parsed({ transmitInterval: 1, receiveInterval: 1 }).settings?.intervalMs).toBe(10);
    expect(parsed({ transmitInterval: '1h' }).settings?.intervalMs).toBe(60_000);
  });

  test('what is not set is 1000 ms times 3, and on', () => {
    expect(parsed({}).settings).toEqual({ enabled: true, intervalMs: 1000, detectMultiplier: 3 });
    expect(parsed(undefined).settings).toBeUndefined();
  });

  test('a text that is no interval is named, with what would be right', () => {
    const { settings, problems } = parsed({ transmitInterval: '1 day' });
    expect(settings).toEqual(DEFAULT_HEALTH);
    expect(problems).toEqual([
      {
        reason: 'InvalidInterval',
        message:
          'Site s1 spec.healthCheckSettings.transmitInterval: "1 day" is no interval: write milliseconds like 300, or a duration like "300ms" or "1.5s"; 1000 ms is used',
      },
    ]);
  });
});

describe('which object decides how a link is probed', () => {
  const base = cluster({ sites: 1, gateways: 1, workers: 2 });
  const withHealth = <T extends { readonly spec: object }>(object: T, transmitInterval: number, enabled = true): T => ({
    ...object,
    spec: { ...object.spec, healthCheckSettings: { transmitInterval, receiveInterval: 10, enabled } },
  });
  const intervals = (objects: TopologyObjects, node: string): Record<string, number> => {
    const world = parseWorld(objects);
    const plan = planNode(world, { member: findMember(world, node)!, underlayMtuBytes: 1500 });
    return Object.fromEntries(plan.probes.map((probe) => [probe.node, probe.intervalMs]));
  };
  const site = { ...base, sites: base.sites.map((own) => withHealth(own, 100)) };
  const pool = { ...site, gatewayPools: site.gatewayPools.map((own) => withHealth(own, 200)) };
  const assignment = { ...pool, assignments: pool.assignments.map((own) => withHealth(own, 300)) };

  test('the assignment before the pool, the pool before the site', () => {
    expect(intervals(base, 's1-w1')).toEqual({ 's1-g1': 1000, 's1-w2': 1000 });
    expect(intervals(site, 's1-w1')).toEqual({ 's1-g1': 100, 's1-w2': 100 });
    expect(intervals(pool, 's1-w1')).toEqual({ 's1-g1': 200, 's1-w2': 100 });
    expect(intervals(assignment, 's1-w1')).toEqual({ 's1-g1': 300, 's1-w2': 100 });
    expect(intervals(assignment, 's1-g1')).toEqual({ 's1-w1': 300, 's1-w2': 300 });
  });

  test('of several assignments the first by name', () => {
    const [own] = base.assignments;
    const second = { ...withHealth(own!, 700), metadata: { name: 'b' } };
    const first = { ...withHealth(own!, 600), metadata: { name: 'a' } };
    expect(intervals({ ...base, assignments: [second, first] }, 's1-w1')['s1-g1']).toBe(600);
  });

  test('a link whose probes are off has none', () => {
    const off = { ...base, assignments: base.assignments.map((own) => withHealth(own, 300, false)) };
    expect(intervals(off, 's1-w1')).toEqual({ 's1-w2': 1000 });
  });
});
