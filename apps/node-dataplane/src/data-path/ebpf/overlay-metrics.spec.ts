import { createMetrics } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import { createOverlayMetrics } from './overlay-metrics.ts';

test('every reason is shown from the start, and each is counted as the kernel counts it', async () => {
  const metrics = createMetrics();
  const overlay = createOverlayMetrics(metrics);
  expect(await metrics.render()).toContain('unbounded_overlay_dropped_packets_total{reason="forged_source"} 0');
  overlay.observe(new Map([['drop_forged_source', 3]]));
  overlay.observe(
    new Map([
      ['drop_forged_source', 5],
      ['redirected_vxlan', 7],
      ['received', 2],
    ]),
  );
  const text = await metrics.render();
  expect(text).toContain('unbounded_overlay_dropped_packets_total{reason="forged_source"} 5');
  expect(text).toContain('unbounded_overlay_sent_packets_total{protocol="vxlan"} 7');
  expect(text).toContain('unbounded_overlay_received_packets_total 2');
});

test('a map that was made anew counts from zero, and nothing is taken off', async () => {
  const metrics = createMetrics();
  const overlay = createOverlayMetrics(metrics);
  overlay.observe(new Map([['received', 10]]));
  overlay.observe(new Map([['received', 4]]));
  expect(await metrics.render()).toContain('unbounded_overlay_received_packets_total 14');
});
