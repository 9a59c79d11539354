import type { Metrics } from '@unbounded/telemetry';
import { createIncreases } from '../../kernel/increases.ts';
import type { TableCounts } from '../../kernel/section-table.ts';
import { type CountedRoute, DIRECTIONS } from '../plan/counted-routes.plan.ts';

/** Packets and bytes of each rule at the owner, from the counters of all the tables that replaced one another. */
export interface RuleTraffic extends TableCounts {
  /** What the next table counts. What is counted no more is forgotten after a while. */
  planned(routes: readonly CountedRoute[]): void;
}

/** Longer than there is between two scrapes, so that the last packets are seen. */
const FORGET_MS = 300_000;

interface Series {
  readonly labels: { readonly rule: string; readonly address: string; readonly direction: string };
  plannedMs: number;
}

export const createRuleTraffic = (
  metrics: Metrics,
  { now = () => performance.now() }: { readonly now?: () => number } = {},
): RuleTraffic => {
  const packetsTotal = metrics.counter({
    name: 'unbounded_egress_rule_packets_total',
    help: 'Packets that this node, which owns the egress address, translates to it (out), and answers to them (in).',
    labels: ['rule', 'address', 'direction'],
  });
  const bytesTotal = metrics.counter({
    name: 'unbounded_egress_rule_bytes_total',
    help: 'Bytes of these packets, from the IP header on.',
    labels: ['rule', 'address', 'direction'],
  });
  const series = new Map<string, Series>();
  const increases = createIncreases<string>();
  const add = ({ labels }: Series, packets: number, bytes: number): void => {
    packetsTotal.inc(labels, packets);
    bytesTotal.inc(labels, bytes);
  };
  const forget = (name: string, { labels }: Series): void => {
    series.delete(name);
    packetsTotal.remove(labels);
    bytesTotal.remove(labels);
  };
  return {
    planned(routes) {
      const nowMs = now();
      for (const { rule, address, counters } of routes)
        for (const direction of DIRECTIONS) {
          const known = series.get(counters[direction]);
          if (known) known.plannedMs = nowMs;
          else {
            const begun = { labels: { rule, address, direction }, plannedMs: nowMs };
            series.set(counters[direction], begun);
            add(begun, 0, 0);
          }
        }
      for (const [name, one] of series) if (nowMs - one.plannedMs > FORGET_MS) forget(name, one);
    },
    observe(counters) {
      for (const { name, packets, bytes } of counters) {
        const one = series.get(name);
        if (one) add(one, increases.of(`${name} packets`, packets), increases.of(`${name} bytes`, bytes));
      }
    },
    restarted: () => increases.restarted(),
  };
};
