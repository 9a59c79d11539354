import type { Nftables, TableFamily } from '@unbounded/nftables';
import { createMetrics } from '@unbounded/telemetry';
import { createDropMetrics } from './drop-metrics.ts';

/** What the agent's metric says that a table has dropped, by reason: its counters are read as the agent reads them. */
export interface DroppedPackets {
  /** Of each reason that any packet was dropped for. */
  all(): Promise<Readonly<Record<string, number>>>;
  of(reason: string): Promise<number>;
}

const SERIES = /^unbounded_firewall_dropped_packets_total\{reason="(\w+)"\} (\d+)$/gm;

/** @param drops as the section says it to the agent */
export const watchDrops = (
  nft: Pick<Nftables, 'readCounters'>,
  { family = 'inet', name = 'unbounded', drops }: DropsOfTable,
): DroppedPackets => {
  const metrics = createMetrics();
  const table = createDropMetrics(metrics)();
  const all: DroppedPackets['all'] = async () => {
    table.observe(await nft.readCounters(family, name), drops);
    const series = [...(await metrics.render()).matchAll(SERIES)];
    return Object.fromEntries(
      series.map(([, reason, count]) => [reason!, Number(count)] as const).filter(([, count]) => count > 0),
    );
  };
  return { all, of: async (reason) => (await all())[reason] ?? 0 };
};

interface DropsOfTable {
  readonly family?: TableFamily;
  readonly name?: string;
  readonly drops: readonly string[];
}
