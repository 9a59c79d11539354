import type { ObservedCounter } from '@unbounded/nftables';
import type { Metrics } from '@unbounded/telemetry';
import { createIncreases } from './increases.ts';

/** What the named counters of our nftables table have counted, over all the tables that replaced one another. */
export interface FirewallMetrics {
  observe(counters: readonly ObservedCounter[]): void;
  /** The table was written anew: its counters begin at zero. */
  restarted(): void;
}

export const createFirewallMetrics = (metrics: Metrics): FirewallMetrics => {
  const dropped = metrics.counter({
    name: 'unbounded_firewall_dropped_packets_total',
    help: 'Packets that the nftables table unbounded dropped, by reason.',
    labels: ['reason'],
  });
  const increases = createIncreases<string>();
  return {
    observe(counters) {
      for (const { name, packets } of counters) dropped.inc({ reason: name }, increases.of(name, packets));
    },
    restarted: () => increases.restarted(),
  };
};
