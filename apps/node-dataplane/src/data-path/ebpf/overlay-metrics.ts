import { type Stat, STATS } from '@unbounded/bpf-maps';
import type { Metrics } from '@unbounded/telemetry';
import { createIncreases } from '../../kernel/increases.ts';

/**
 * What the eBPF programs have counted (bpf/include/stats.h). The map outlives the agent, so the metrics go on where they were
 * when it starts anew, and begin at zero only with the map.
 */
export interface OverlayMetrics {
  observe(counted: ReadonlyMap<Stat, number>): void;
}

const PROTOCOL = /^redirected_(\w+)$/;
const DROPPED = /^drop_(\w+)$/;

export const createOverlayMetrics = (metrics: Metrics): OverlayMetrics => {
  const sent = metrics.counter({
    name: 'unbounded_overlay_sent_packets_total',
    help: 'Packets that the eBPF program redirected to a tunnel or WireGuard device, by protocol.',
    labels: ['protocol'],
  });
  const received = metrics.counter({
    name: 'unbounded_overlay_received_packets_total',
    help: 'Packets from tunnels that passed source validation.',
  });
  const dropped = metrics.counter({
    name: 'unbounded_overlay_dropped_packets_total',
    help: 'Packets that the eBPF programs dropped, by reason.',
    labels: ['reason'],
  });
  const add = (stat: Stat, packets: number): void => {
    const protocol = PROTOCOL.exec(stat)?.[1];
    const reason = DROPPED.exec(stat)?.[1];
    if (protocol !== undefined) sent.inc({ protocol }, packets);
    else if (reason !== undefined) dropped.inc({ reason }, packets);
    else received.inc(packets);
  };
  for (const stat of STATS) add(stat, 0); // a reason that never was is shown as 0
  const increases = createIncreases<Stat>();
  return {
    observe(counted) {
      for (const [stat, packets] of counted) add(stat, increases.of(stat, packets));
    },
  };
};
