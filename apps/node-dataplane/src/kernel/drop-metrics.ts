import type { ObservedCounter } from '@unbounded/nftables';
import type { Metrics } from '@unbounded/telemetry';
import { createIncreases } from './increases.ts';

/** What a table has dropped, over all the tables that replaced one another. */
export interface TableDrops {
  /** @param drops names of the counters that count dropped packets */
  observe(counters: readonly ObservedCounter[], drops: readonly string[]): void;
  /** The table was written anew: its counters begin at zero. */
  restarted(): void;
}

/**
 * @param onDropped told of what is added to the metric
 * @returns a table's own, into the one metric of all tables
 */
export const createDropMetrics = (
  metrics: Metrics,
  onDropped: (reason: string, packets: number) => void = () => undefined,
): (() => TableDrops) => {
  const dropped = metrics.counter({
    name: 'unbounded_firewall_dropped_packets_total',
    help: 'Packets that our nftables tables dropped, by reason.',
    labels: ['reason'],
  });
  return () => {
    const increases = createIncreases<string>();
    return {
      observe(counters, drops) {
        for (const { name, packets } of counters) {
          if (!drops.includes(name)) continue;
          const increase = increases.of(name, packets);
          dropped.inc({ reason: name }, increase);
          onDropped(name, increase);
        }
      },
      restarted: () => increases.restarted(),
    };
  };
};
