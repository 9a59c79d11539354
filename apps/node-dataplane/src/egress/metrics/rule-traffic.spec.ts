import { createMetrics, type Metrics } from '@unbounded/telemetry';
import { beforeEach, expect, test } from 'vitest';
import type { CountedRoute } from '../plan/counted-routes.plan.ts';
import { createRuleTraffic, type RuleTraffic } from './rule-traffic.ts';

const counted = (rule: string): CountedRoute => ({
  rule,
  address: '192.0.2.1',
  counters: { out: `out/${rule}`, in: `in/${rule}` },
});

let metrics: Metrics;
let traffic: RuleTraffic;
let nowMs = 0;
beforeEach(() => {
  nowMs = 0;
  metrics = createMetrics();
  traffic = createRuleTraffic(metrics, { now: () => nowMs });
});
const shown = async (what: 'packets' | 'bytes' = 'packets'): Promise<string[]> =>
  [...(await metrics.render()).matchAll(/^unbounded_egress_rule_(\w+)_total\{(.*)\} (\d+)$/gm)]
    .filter(([, kind]) => kind === what)
    .map(([, , labels, value]) => `${labels!.replaceAll(/"|rule=|address=|direction=/g, '')} ${value}`)
    .sort();
const see = (name: string, packets: number): void => traffic.observe([{ name, packets, bytes: packets * 100 }]);

test('a rule is there from the beginning, with the packets and bytes of both ways', async () => {
  traffic.planned([counted('a')]);
  expect(await shown()).toEqual(['a,192.0.2.1,in 0', 'a,192.0.2.1,out 0']);
  see('out/a', 3);
  see('in/a', 2);
  see('no_owner', 7);
  expect(await shown()).toEqual(['a,192.0.2.1,in 2', 'a,192.0.2.1,out 3']);
  expect(await shown('bytes')).toEqual(['a,192.0.2.1,in 200', 'a,192.0.2.1,out 300']);
});

test('a look at rest adds nothing, and a table that begins anew takes nothing away', async () => {
  traffic.planned([counted('a')]);
  see('out/a', 3);
  see('out/a', 3);
  traffic.restarted();
  see('out/a', 5); // more than before: all of them are new
  expect(await shown()).toContain('a,192.0.2.1,out 8');
  see('out/a', 1); // somebody else wrote it anew
  expect(await shown()).toContain('a,192.0.2.1,out 9');
});

test('the last packets of a rule that ends are seen for a while', async () => {
  traffic.planned([counted('a'), counted('b')]);
  traffic.planned([counted('b')]);
  see('out/a', 3);
  nowMs = 200_000;
  traffic.planned([counted('b')]);
  expect(await shown()).toContain('a,192.0.2.1,out 3');
  nowMs = 400_000;
  traffic.planned([counted('b')]);
  expect(await shown()).toEqual(['b,192.0.2.1,in 0', 'b,192.0.2.1,out 0']);
});
