import type { L2Reason } from '@unbounded/bpf-maps/l2';
import { createMetrics } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import { createFrameMetrics } from './frame-metrics.ts';
import type { L2Maps } from './maps.ts';

const PORT = 7;
const owners = new Map([[PORT, { network: 'lan', endpoint: 'default/pod' }]]);

/** What the programs have counted of a reason, on two processors. */
const mapsOf = (reason: L2Reason, values: readonly [bigint, bigint]): Pick<L2Maps, 'counters' | 'totals'> =>
  ({
    counters: { entries: () => [[{ ifindex: PORT, reason }, values]] },
    totals: { entries: () => [[reason, values]] },
  }) as unknown as Pick<L2Maps, 'counters' | 'totals'>;

/** That each reason gets there is in bpf/l2-metrics.kernel.spec.ts. */
test('what all processors counted raises the metric of the port, and that of what other nodes sent', async () => {
  const metrics = createMetrics();
  const frames = createFrameMetrics(metrics);
  frames.observe(mapsOf('drop_rate', [0n, 0n]), owners);
  frames.observe(mapsOf('drop_rate', [2n, 3n]), owners);
  const text = await metrics.render();
  expect(text).toContain('unbounded_l2_port_frames_total{network="lan",endpoint="default/pod",result="drop_rate"} 5');
  expect(text).toContain('unbounded_l2_received_frames_dropped_total{reason="rate"} 5');
});

test('the series of a port end with it', async () => {
  const metrics = createMetrics();
  const frames = createFrameMetrics(metrics);
  frames.observe(mapsOf('drop_rate', [1n, 0n]), owners);
  frames.observe(mapsOf('drop_rate', [1n, 0n]), new Map());
  expect(await metrics.render()).not.toContain('unbounded_l2_port_frames_total{');
});
