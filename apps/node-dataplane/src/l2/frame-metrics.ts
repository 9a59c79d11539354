import type { L2Reason } from '@unbounded/bpf-maps/l2';
import type { Metrics } from '@unbounded/telemetry';
import { createIncreases } from '../kernel/increases.ts';
import type { L2Maps } from './maps.ts';

/** What the programs counted, as metrics: at each port, whose series end with it, and of frames that came from other nodes. */

/** By ifindex: of which network and endpoint a port is. */
export type PortOwners = ReadonlyMap<number, { readonly network: string; readonly endpoint: string }>;

export interface FrameMetrics {
  observe(maps: Pick<L2Maps, 'counters' | 'totals'> | undefined, owners: PortOwners): void;
}

const DROP = 'drop_';
const sumOf = (values: readonly bigint[]): number => Number(values.reduce((sum, value) => sum + value, 0n));

export const createFrameMetrics = (metrics: Metrics): FrameMetrics => {
  const frames = metrics.counter({
    name: 'unbounded_l2_port_frames_total',
    help: 'Frames at the port of a pod in a Network, by what became of them; drop_… says why a frame was dropped.',
    labels: ['network', 'endpoint', 'result'],
  });
  const dropped = metrics.counter({
    name: 'unbounded_l2_received_frames_dropped_total',
    help: 'Frames that other nodes sent and no port of this node took, by reason. Frames in the name of others and of no node are among them.',
    labels: ['reason'],
  });
  const increases = createIncreases<string>();
  const observeTotals = (totals: L2Maps['totals']): void => {
    for (const [reason, values] of totals.entries())
      if (reason.startsWith(DROP))
        dropped.inc({ reason: reason.slice(DROP.length) }, increases.of(reason, sumOf(values)));
  };
  let labelled = new Map<string, { network: string; endpoint: string; result: L2Reason }>();
  return {
    observe(maps, owners) {
      if (maps) observeTotals(maps.totals);
      const now = new Map<string, { network: string; endpoint: string; result: L2Reason }>();
      for (const [{ ifindex, reason }, values] of maps?.counters.entries() ?? []) {
        const owner = owners.get(ifindex);
        if (!owner) continue;
        const labels = { ...owner, result: reason };
        const key = `${ifindex} ${reason} ${owner.network} ${owner.endpoint}`;
        frames.inc(labels, increases.of(key, sumOf(values)));
        now.set(key, labels);
      }
      for (const [key, labels] of labelled) if (!now.has(key)) frames.remove(labels);
      labelled = now;
    },
  };
};
