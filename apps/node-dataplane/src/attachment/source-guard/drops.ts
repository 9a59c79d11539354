import { type ObservedTable, packetsOf } from '@unbounded/nftables';
import type { Metrics } from '@unbounded/telemetry';
import { createIncreases, increase } from '../../kernel/increases.ts';
import { DROP_REASONS, type DropReason } from './guard-expressions.ts';
import { dropChainOf, dropSet } from './guard-table.plan.ts';

/** What the kernel counts of dropped frames, as metrics for all pods and as notes for each that did it. */

/** A pod that goes on and on is told of once in this time, milliseconds. */
const NOTE_EVERY_MS = 600_000;

export interface DropReader {
  /** Of a table as it was read; `podOf` names the pod behind a port (`namespace/name`). */
  read(table: ObservedTable, podOf: (interfaceIndex: number) => string | undefined): void;
  /** The table was written anew: its counters begin at 0. */
  reset(): void;
  /** What pods did since the last call, a sentence each. */
  takeNotes(): string[];
}

type Counts = Map<DropReason, number>;

const portOf = (key: Uint8Array): number => new DataView(key.buffer, key.byteOffset, key.length).getUint32(0, true);

const totals = ({ chains }: ObservedTable): Counts =>
  new Map(
    DROP_REASONS.map((reason) => {
      const chain = chains.find(({ name }) => name === dropChainOf(reason));
      return [reason, chain?.rules.reduce((sum, rule) => sum + (packetsOf(rule) ?? 0), 0) ?? 0];
    }),
  );

/** Frames by port and reason. */
const byPort = ({ sets }: ObservedTable): Map<number, Counts> => {
  const found = new Map<number, Counts>();
  for (const reason of DROP_REASONS) {
    for (const { key, packets = 0 } of sets.find(({ name }) => name === dropSet(reason))?.elements ?? []) {
      const counts: Counts = found.get(portOf(key)) ?? new Map();
      found.set(portOf(key), counts.set(reason, packets));
    }
  }
  return found;
};

export const droppedFrames = (metrics: Metrics) =>
  metrics.counter({
    name: 'unbounded_pod_frames_dropped_total',
    help: 'Frames of pods that source validation dropped, by reason.',
    labels: ['reason'],
  });

export const createDropReader = (metrics: Metrics, now: () => number = () => performance.now()): DropReader => {
  const dropped = droppedFrames(metrics);
  for (const reason of DROP_REASONS) dropped.inc({ reason }, 0);
  const increases = createIncreases<DropReason>();
  let lastByPort = new Map<number, Counts>();
  const toldAt = new Map<string, number>();
  const notes = new Map<string, Counts>();

  const note = (pod: string, counts: Counts): void => {
    const sum = notes.get(pod) ?? new Map();
    for (const [reason, count] of counts) sum.set(reason, (sum.get(reason) ?? 0) + count);
    notes.set(pod, sum);
  };

  return {
    read(table, podOf) {
      const ports = byPort(table);
      for (const [reason, count] of totals(table)) dropped.inc({ reason }, increases.of(reason, count));
      for (const [port, counts] of ports) {
        const before = lastByPort.get(port);
        const more = new Map([...counts].map(([reason, count]) => [reason, increase(count, before?.get(reason))]));
        const pod = podOf(port);
        if (pod !== undefined && [...more.values()].some((count) => count > 0)) note(pod, more);
      }
      lastByPort = ports; // an element that expired is none of them any more
    },
    reset() {
      increases.restarted();
      lastByPort = new Map();
    },
    takeNotes() {
      for (const [pod, told] of toldAt) if (now() - told >= NOTE_EVERY_MS) toldAt.delete(pod);
      const inOrder = [...notes].sort(([a], [b]) => (a < b ? -1 : 1));
      return inOrder.flatMap(([pod, counts]) => {
        if (toldAt.has(pod)) return [];
        toldAt.set(pod, now());
        notes.delete(pod);
        const shown = DROP_REASONS.flatMap((reason) => {
          const count = counts.get(reason) ?? 0;
          return count > 0 ? [`${reason} ${count}`] : [];
        });
        return [
          `pod ${pod} sent frames with a MAC, address or protocol that is not its own; dropped: ${shown.join(', ')}`,
        ];
      });
    },
  };
};
